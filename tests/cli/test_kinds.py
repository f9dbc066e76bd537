"""What columns are, as said on the command line and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from latentdo.cli.options import EstimatorOptions
from latentdo.cli.values import kinds_in_lines, words_of_text, words_of_value
from latentdo.readers.table import ReadingOptions, read_labelled, read_table


def test_flags_and_files_say_the_same() -> None:
    said = {"clicks": "count", "a, b": "categorical"}
    for words in (
        ["clicks=count", '"a, b"=categorical'],
        words_of_value("kinds", said, list[str]),
        words_of_text("kinds", 'clicks=count,"a, b"=categorical', list[str]),
        words_of_value("kinds", 'clicks=count, "a, b"=categorical', list[str]),
    ):
        assert kinds_in_lines(words) == said
        assert EstimatorOptions(kinds=words).given()["kinds"] == said


@pytest.mark.parametrize("value", [3, {"clicks": 1}, [1]])
def test_files_that_say_something_else_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'kinds'.*clicks = \"count\""):
        words_of_value("kinds", value, list[str])


def test_flags_without_a_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="'clicks' is not of the form name=kind"):
        kinds_in_lines(["clicks"])


def test_text_in_a_file_is_a_category(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "a,tissue,code\n" + "".join(f"{i}.5,{'liver' if i % 3 else 'skin'},{i % 4}x\n" for i in range(40))
    )
    X = read_table(path)
    assert X["tissue"].cat.categories.tolist() == ["liver", "skin"]
    assert X["code"].iloc[5] == "1x"
    numbers = tmp_path / "n.csv"
    numbers.write_text("a,drug\n" + "".join(f"{i}.5,{'none' if i % 2 else 'u0126'}\n" for i in range(40)))
    with pytest.raises(ValueError, match="regime_column='drug'"):
        read_table(numbers)
    X, _ = read_labelled(numbers, {}, ReadingOptions(kinds={"drug": "categorical"}))
    assert set(X["drug"]) == {"none", "u0126"}


def test_an_offset_column_is_no_variable(run: Any, tmp_path: Path) -> None:
    folder, out = tmp_path / "s", tmp_path / "r"
    arguments = ["--preset", "counts", "--n-samples", "200", "--n-variables", "3", "--n-regimes", "1"]
    code, said, _ = run("simulate", "--out", folder, *arguments)
    assert code == 0
    assert "--offset-column exposure" in said
    data = folder / "data.csv"
    fit = [
        "fit",
        data,
        "--out",
        out,
        "--density",
        "linear",
        "--max-regimes",
        "1",
        "--offset-column",
        "exposure",
    ]
    code, _, err = run(*fit)
    assert code == 0, err
    code, _, err = run("evaluate", out, "--truth", folder)
    assert code == 0, err
    code, _, err = run("predict", out, data, "--out", tmp_path / "p.csv", "--offset-column", "exposure")
    assert code == 0, err
    code, _, err = run("predict", out, data, "--out", tmp_path / "q.csv")
    assert code == 1
    assert "--offset-column" in err

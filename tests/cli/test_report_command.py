"""A report written again, with the table that was fitted or without."""

from dataclasses import replace

import numpy as np
import pandas as pd

from latentdo.data import content_hash
from latentdo.outputs import write_outputs


def test_report_can_be_written_again(run, tmp_path, make_result):
    case = make_result(n_samples=60)
    result = replace(case.result, data_hash=content_hash(case.X.to_numpy(), case.result.columns))
    folder = write_outputs(result, tmp_path / "r")
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert run("report", folder)[0] == 0
    assert (folder / "report.html").read_bytes() == before
    case.X.to_csv(tmp_path / "data.csv", index=False)
    assert run("report", folder, "--data", tmp_path / "data.csv", "--out", tmp_path / "x.html")[0] == 0
    assert "The surest effects in your data" in (tmp_path / "x.html").read_text("utf-8")


def test_report_refuses_another_table_and_writes_nothing(run, tmp_path, make_result):
    case = make_result(n_samples=60)
    result = replace(case.result, data_hash=content_hash(case.X.to_numpy(), case.result.columns))
    folder = write_outputs(result, tmp_path / "r")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name, other in (("shuffled", case.X.iloc[::-1]), ("changed", case.X + 0.01), ("short", case.X[:50])):
        other.to_csv(tmp_path / f"{name}.csv", index=False)
        code, out, err = run("report", folder, "--data", tmp_path / f"{name}.csv")
        assert (code, out) == (1, "")
        assert "is not the table that was fitted" in err
        assert "give that table" in err
        assert "latentdo fit" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_report_knows_the_fitted_table_by_what_was_used_of_it(run, tmp_path, make_result):
    case = make_result(n_samples=60)
    columns = list(case.result.columns)
    exact = case.X.to_numpy()
    single = exact.astype(np.float32)
    gaps = pd.concat([case.X, case.X[:2] * np.nan]).assign(note="left out")[["note", *reversed(columns)]]
    cases = {
        "gaps": (content_hash(exact, columns), {}, gaps),  # --missing drop, other columns, another order
        "single": (content_hash(single, columns), {}, pd.DataFrame(single, columns=columns)),
        "streamed": ("1" * 64, {"streamed_rows": 60}, case.X),
        "unrecorded": ("", {}, case.X),
    }
    for name, (data_hash, configuration, table) in cases.items():
        result = replace(case.result, data_hash=data_hash, configuration=configuration)
        folder = write_outputs(result, tmp_path / name)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        code, _, err = run("report", folder, "--data", tmp_path / f"{name}.csv")
        assert code == 0, err


def test_tables_of_a_result_that_end_pandas_are_refused_by_name(run, tmp_path, make_result):
    """An exponent at which pandas' default parser ends the process."""
    folder = write_outputs(make_result(n_samples=60).result, tmp_path / "r")
    truth = write_outputs(make_result(n_samples=60).result, tmp_path / "truth")
    header = "trial,held_out,seconds,within_one_error,chosen,edges,targets,regimes\n"
    (folder / "trials.csv").write_text(header + "1,1e257301222821,1,True,True,1,1,1\n")
    code, _, err = run("report", folder)
    assert code == 1
    assert "trials.csv" in err
    assert "held_out" in err
    (truth / "adjacency.csv").write_text(",X1\nX1,1e257301222821\n")
    code, _, err = run("evaluate", folder, "--truth", truth)
    assert code == 1
    assert "adjacency.csv" in err
    (folder / "regimes.csv").write_text("row,regime\n1e257301222821,0\n")
    (truth / "adjacency.csv").unlink()
    code, _, err = run("evaluate", folder, "--truth", truth)
    assert code == 1
    assert "regimes.csv" in err

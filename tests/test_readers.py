"""Reading files: every format gives the same table, every flaw a message that says what to do."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from latentdo.data import Dataset, DataWarning
from latentdo.readers import files, read_table, text

CSV = "a,b,drug\n1.5,2,none\n0.1,4,x\n-3e2,8,\n2,16,x\n"
VALUES = np.array([[1.5, 2.0], [0.1, 4.0], [-300.0, 8.0], [2.0, 16.0]])


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ----------------------------------------------------------------------------------------- what is accepted


def test_table_alone_and_with_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", CSV)
    X = read_table(path, drop=["drug"])
    assert isinstance(X, pd.DataFrame)
    np.testing.assert_array_equal(X.to_numpy(), VALUES)
    X, regimes = read_table(str(path), regime_column="drug")
    assert X.columns.to_list() == ["a", "b"]
    assert (X.dtypes == np.float64).all()
    assert regimes.name == "drug"
    assert regimes[:2].to_list() == ["none", "x"]
    assert regimes.isna().to_list() == [False, False, True, False]
    data = Dataset.from_table(X, regimes=regimes, observational="none")
    np.testing.assert_array_equal(data.regimes, [0, 1, -1, 1])


UGLY = """,id,when,condition,a,b,c,unit
0,s0,2026-01-01,x,1,,3,7
1,s1,2026-01-02,y,2,5,4,7
2,s2,2026-01-03,x,4,3,9,7
3,s3,2026-01-04,y,3,8,1,7
"""


def test_all_that_is_wrong_is_said_at_once_and_mended_by_what_is_said(tmp_path):
    path = tmp_path / "ugly.csv"
    path.write_text(UGLY)
    with pytest.raises(ValueError, match="cannot be used as it is") as caught:
        read_table(path)
    message = str(caught.value)
    for name in ("Unnamed: 0", "id", "when", "condition", "b", "unit"):
        assert repr(name) in message
    assert "'when' says when" in message
    (mend,) = re.findall(r"at once by (.*)", message)
    X = read_table(path, **eval(f"dict({mend})"))
    assert list(X.columns) == ["a", "b", "c"]


def test_what_only_hands_can_mend_is_told_apart(tmp_path):
    path = tmp_path / "marks.csv"
    path.write_text("a,b,k\n1'000.5,1,2\n2,3,2\n4,9,2\n")
    with pytest.raises(ValueError, match=r"(?s)1'000.5.*by hand.*drop=\['k'\]"):
        read_table(path)


@pytest.mark.parametrize("drop", [["a,c"], ["a, c"], ["a", "c"]])
def test_names_may_have_commas_between_them(tmp_path, drop):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,2,3,4\n3,5,4,1\n4,4,9,2\n")
    assert list(read_table(path, drop=drop).columns) == ["b", "d"]


@pytest.mark.parametrize(
    ("name", "content", "arguments"),
    [
        ("t.tsv", CSV.replace(",", "\t"), {}),
        ("t.txt", CSV.replace(",", "\t"), {}),
        ("T.CSV", CSV, {}),
        ("t.csv", CSV.replace("\n", "\r\n"), {}),
        ("t.csv", CSV.rstrip("\n"), {}),
        ("t.csv", CSV + "\n\n", {}),
        ("t.csv", b"\xef\xbb\xbf" + CSV.encode(), {}),
        ("t.csv", CSV.replace(",", ";"), {"separator": ";"}),
        ("t.csv", CSV.replace(",", ";").replace(".", ","), {"separator": ";", "decimal": ","}),
        ("t.csv", CSV.replace("1.5,2", '"1.5","2"'), {}),
        ("t.csv", CSV.encode("utf-16"), {"encoding": "utf-16"}),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0), {}),
        ("t.csv.bz2", bz2.compress(CSV.encode()), {}),
        ("t.csv.xz", lzma.compress(CSV.encode()), {}),
        ("my.cells.csv", CSV, {}),
    ],
)
def test_text_formats(tmp_path: Path, name: str, content: str | bytes, arguments: dict[str, Any]) -> None:
    X = read_table(write(tmp_path, name, content), drop=["drug"], **arguments)
    np.testing.assert_array_equal(X.to_numpy(), VALUES)
    assert X.columns.to_list() == ["a", "b"]


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_binary_tables(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": VALUES[:, 0], "b": VALUES[:, 1].astype(int), "drug": ["none", "x", None, "x"]})
    path = tmp_path / f"t.{ending}"
    getattr(frame, f"to_{ending}")(path)
    X, regimes = read_table(path, "drug")
    np.testing.assert_array_equal(X.to_numpy(), VALUES)
    assert regimes.isna().sum() == 1
    with pytest.raises(ValueError, match=r"Non-numeric columns: 'drug' \(row 0.*drop=\['drug'\]"):
        read_table(path)
    frame.assign(a=["1", "2", "3", "4"]).to_parquet(tmp_path / "words.parquet")
    with pytest.raises(ValueError, match=r"'a'.*stored in another form.*astype\(float\)"):
        read_table(tmp_path / "words.parquet", drop=["drug"])
    write(tmp_path, f"broken.{ending}", b"PAR1 but not really")
    with pytest.raises(ValueError, match=f"cannot be read as {ending}"):
        read_table(tmp_path / f"broken.{ending}")


def test_index_of_parquet_may_hold_labels_and_repeat(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(VALUES, columns=["a", "b"], index=pd.Index(["u", "v", "u", "v"], name="drug"))
    frame.to_parquet(tmp_path / "t.parquet")
    X, regimes = read_table(tmp_path / "t.parquet", "drug")
    assert regimes.to_list() == ["u", "v", "u", "v"]
    assert X.index.to_list() == ["u", "v", "u", "v"]


@pytest.mark.parametrize("sparse", [False, True])
def test_h5ad(tmp_path: Path, sparse: bool) -> None:
    anndata = pytest.importorskip("anndata")
    counts = np.array(
        [[0, 3, 1, 0], [2, 0, 1, 0], [5, 1, 1, 0], [0, 7, 1, 0], [1, 1, 1, 2]], dtype=np.float32
    )
    wrap = scipy.sparse.csr_matrix if sparse else np.asarray
    cells = anndata.AnnData(
        X=wrap(counts),
        obs=pd.DataFrame({"guide": pd.Categorical(["ctrl", "g1", "g1", None, "ctrl"])}, index=list("vwxyz")),
        var=pd.DataFrame(index=["G1", "G2", "flat", "G4"]),
        layers={"logged": wrap(np.log1p(counts))},
    )
    path = tmp_path / "t.h5ad"
    with anndata.settings.override(allow_write_nullable_strings=True):  # the text columns of pandas 3
        cells.write_h5ad(path)
    X, regimes = read_table(path, "guide", drop=["flat"])
    np.testing.assert_array_equal(X.to_numpy(), counts[:, [0, 1, 3]].astype(float))
    assert X.columns.to_list() == ["G1", "G2", "G4"]
    assert X.index.to_list() == list("vwxyz")
    data = Dataset.from_table(X, regimes=regimes, observational="ctrl")
    np.testing.assert_array_equal(data.regimes, [0, 1, 1, -1, 0])
    logged = read_table(path, columns=["G2", "G1"], layer="logged")
    np.testing.assert_array_equal(logged.to_numpy(), np.log1p(counts)[:, [1, 0]].astype(float))
    for arguments, message in (
        ({}, "Constant columns: 'flat'"),
        ({"layer": "raw"}, "no layer 'raw'; its layers are 'logged'"),
        ({"regime_column": "dose"}, "no obs column 'dose'; they are 'guide'"),
        ({"columns": ["G9"]}, "no column 'G9'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_table(path, **arguments)
    write(tmp_path, "broken.h5ad", b"not hdf5")
    with pytest.raises(ValueError, match="cannot be read as h5ad"):
        read_table(tmp_path / "broken.h5ad")


def test_numbers_are_read_exactly(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(500, 3)) * 10.0 ** np.array([-5, 0, 5])
    path = tmp_path / "t.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        pd.DataFrame(values, columns=["a", "b", "c"]).to_csv(path, index=False)
        np.testing.assert_array_equal(read_table(path).to_numpy(), values)


def test_selection_and_order(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,b,c,k\n1,2,3,9\n4,5,7,9\n7,8,8,9\n0,0,1,9\n")
    assert read_table(path, columns=["c", "a"]).columns.to_list() == ["c", "a"]
    assert read_table(path, drop=["k", "b"]).columns.to_list() == ["a", "c"]
    X, regimes = read_table(path, "b", drop=["k"])
    assert X.columns.to_list() == ["a", "c"]
    assert regimes.to_list() == [2, 5, 8, 0]


def test_rows_are_dropped_only_on_request_and_labels_with_them(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,b,r\n1,2,u\nNA,3,v\n2,inf,w\n5,6,x\n7,9,\n")
    with pytest.raises(
        ValueError, match=r"t.csv: .*NaN in row 1 \(counted from 0\), column 'a'.*'a' 1, 'b' 1.*missing"
    ):
        read_table(path, "r")
    X, regimes = read_table(path, "r", missing="drop")
    assert X.index.to_list() == [0, 3, 4]
    assert regimes.index.equals(X.index)
    assert regimes.to_list()[:2] == ["u", "x"]


def test_the_label_none_is_a_label(tmp_path: Path) -> None:
    _, regimes = read_table(write(tmp_path, "t.csv", "a,r\n1,None\n2,NA\n3,null\n"), "r")
    assert regimes.fillna("?").to_list() == ["None", "?", "null"]


def test_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "1.5,2\n0.5,4\n3,9\n")
    with pytest.raises(ValueError, match=r"holds numbers \(1.5, 2, \.\.\.\), not names; pass header=False"):
        read_table(path)
    X = read_table(path, header=False)
    assert X.columns.to_list() == ["X1", "X2"]
    assert len(X) == 3


def test_integer_names_as_pandas_writes_them(tmp_path: Path) -> None:
    pd.DataFrame(VALUES).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv").columns.to_list() == ["0", "1"]


# ------------------------------------------------------------------------------------------ what is refused

GOOD = "a,b\n1,2\n3,5\n4,4\n"
BAD_FILES: list[tuple[str, str, str | bytes, dict[str, Any], str]] = [
    ("empty", "t.csv", "", {}, r"t.csv is empty"),
    ("blank", "t.csv", "\n\n", {}, r"t.csv is empty"),
    ("header only", "t.csv", "a,b\n", {}, r"names but no rows"),
    ("ending", "t.xlsx", GOOD, {}, r"'.xlsx'; supported are csv, tsv"),
    ("no ending", "table", GOOD, {}, r"ending ''"),
    ("compressed parquet", "t.parquet.gz", GOOD, {}, r"Cannot tell the format"),
    (
        "not utf-8",
        "t.csv",
        "a,b\n1,2\n3,é\n".encode("latin-1"),
        {},
        r"not utf-8.* text .*encoding=\"latin-1\"",
    ),
    ("binary", "t.csv", bytes(range(256)), {}, r"not utf-8|cannot be read"),
    ("broken gzip", "t.csv.gz", b"no gzip", {}, r"cannot be read"),
    ("cut gzip", "t.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:-9], {}, r"cannot be read"),
    ("long row", "t.csv", "a,b\n1,2\n3,4,5\n6,7\n", {}, r"line 3: 3 fields, but the first row has 2"),
    ("all rows long", "t.csv", "a,b\n1,2,3\n4,5,6\n", {}, r"line 2: 3 fields"),
    ("short row", "t.csv", "a,b\n1,2\n3\n6,7\n", {}, r"line 3: 1 fields"),
    ("duplicate names", "t.csv", "a,b,a\n1,2,3\n4,5,7\n", {}, r"Duplicate column names: 'a'"),
    ("index", "t.csv", ",a,b\n0,1,2\n1,3,5\n2,9,9\n", {}, r"without a name .*drop=\['Unnamed: 0'\]"),
    ("index twice", "t.csv", "Unnamed: 0,a,b\n0,1,2\n1,3,5\n", {}, r"drop=\['Unnamed: 0'\]"),
    ("constant", "t.csv", "a,b,k\n1,2,3\n3,5,3\n4,4,3\n", {}, r"Constant columns: 'k'.*drop=\['k'\]"),
    ("text", "t.csv", "a,b,t\n1,2,x\n3,5,y\n4,4,x\n", {}, r"'t' \(row 0.*'x'.*drop=\['t'\].*categorical"),
    ("typo", "t.csv", "a,b\n1,2\n3,5o\n4,4\n", {}, r"'b' \(row 1, counted from 0, of 'b' is '5o'"),
    ("decimal comma", "t.csv", "a;b\n1,5;2\n3,5;5\n4,0;4\n", {"separator": ";"}, r"is '1,5'.*decimal=\",\""),
    ("separator", "t.csv", "a;b\n1;2\n", {}, r"single column 'a;b'.*separator=';'"),
    ("long separator", "t.csv", GOOD, {"separator": "::"}, r"single character"),
    ("all missing", "t.csv", "a,b\n1,\n,5\n", {"missing": "drop"}, r"Every row has a missing value"),
    ("unknown column", "t.csv", GOOD, {"columns": ["a", "q"]}, r"no column 'q'; its columns are 'a', 'b'"),
    ("unknown drop", "t.csv", GOOD, {"drop": ["q"]}, r"no column 'q'"),
    ("unknown regime", "t.csv", GOOD, {"regime_column": "q"}, r"no column 'q'"),
    ("file of duplicate", "t.csv", "a,b,a\n1,2,3\n2,3,5\n", {}, r"^t\.csv: Duplicate column names: 'a'"),
    (
        "conditions",
        "t.csv",
        "a,condition\n1,ctrl\n3,drug\n4,drug\n2,ctrl\n",
        {},
        r"If 'condition' says .* pass regime_column='condition'",
    ),
    ("column twice", "t.csv", GOOD, {"columns": ["a", "a"]}, r"Duplicate column names"),
    ("contradiction", "t.csv", GOOD, {"columns": ["a", "b"], "drop": ["a"]}, r"'a' cannot be a variable and"),
    (
        "regime as variable",
        "t.csv",
        GOOD,
        {"columns": ["a"], "regime_column": "a"},
        r"'a' cannot be a variable",
    ),
    ("nothing left", "t.csv", GOOD, {"drop": ["a", "b"]}, r"No variables are left"),
    ("layer", "t.csv", GOOD, {"layer": "x"}, r"layer='x' is for .h5ad files"),
    ("missing", "t.csv", GOOD, {"missing": "fill"}, r"missing='fill' is unknown"),
]


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"), [b[1:] for b in BAD_FILES], ids=[b[0] for b in BAD_FILES]
)
def test_bad_files_are_refused(
    tmp_path: Path, name: str, content: str | bytes, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, name, content), **arguments)


PACKERS = {"csv": bytes, "csv.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("a,b\n1,2\n3\x005,5\n4,4\n", r"row 1 .*line 3.*'a'"),
        ("a,b\n1,2\n3,\x00\n4,4\n", r"row 1 .*line 3.*'b'"),
        ("a,b\n1,2\n3,5\x00\n", r"row 1 .*line 3.*'b'"),
        ('a,b\n1,"2\n\x00"\n3,5\n', r"row 0 .*line 3.*'b'"),
        ("a,b\x00\n1,2\n3,5\n", r"line 1.*column 2"),
    ],
)
def test_a_nul_is_refused_by_row_and_column(tmp_path: Path, ending: str, content: str, place: str) -> None:
    path = write(tmp_path, f"t.{ending}", PACKERS[ending](content.encode()))
    with pytest.raises(ValueError, match=rf"t\.{ending}: {place}.*NUL"):
        read_table(path)


@pytest.mark.parametrize("ending", [ending for ending in PACKERS if ending != "csv"])
def test_what_unpacks_beyond_the_limit_is_refused_while_it_unpacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    content = b"a,b\n" + b"1,2\n3,4\n" * 50_000  # 400 kB
    path = write(tmp_path, f"t.{ending}", PACKERS[ending](content))
    monkeypatch.setattr(files, "_ALWAYS_UNPACKED", 100_000)
    monkeypatch.setattr(files, "_USUAL_RATIO", 2)
    unpacked = []
    count = files.check_unpacked
    monkeypatch.setattr(files, "check_unpacked", lambda *given: (unpacked.append(given[1]), count(*given)))
    with pytest.raises(ValueError, match=rf"t\.{ending}.*0\.0001 GB.*{files.UNPACKED_VARIABLE}"):
        read_table(path)
    assert max(unpacked) < 250_000
    monkeypatch.setenv(files.UNPACKED_VARIABLE, "0.01")
    assert len(read_table(path)) == 100_000
    monkeypatch.setenv(files.UNPACKED_VARIABLE, "much")
    with pytest.raises(ValueError, match=rf"{files.UNPACKED_VARIABLE}='much'"):
        read_table(path)


def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_LONGEST_LINE", 1000)
    for ending, pack in PACKERS.items():
        path = write(tmp_path, f"t.{ending}", pack(b"a,b\n1,2\n" + b"7" * 5000))
        with pytest.raises(ValueError, match=rf"t\.{ending}, line 3"):
            read_table(path)


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("1e400", r"1\.8e308.*unit"),
        ("1e257301222821", r"1\.8e308.*unit"),
        ("9" * 400, r"1\.8e308.*unit"),
        ("1,5", r'decimal=","'),
        ("1.234,5", r"without marks.*'\.' as decimal"),
        ("1,234.5", r"without marks"),
        ("1_000", r"without marks"),
        ("\u0661\u0662", r"digits 0 to 9"),
    ],
)
def test_a_cell_that_is_nearly_a_number_is_explained(tmp_path: Path, cell: str, remedy: str) -> None:
    path = write(tmp_path, "t.csv", f'a,b\n1,2\n2,"{cell}"\n3,7\n')
    with pytest.raises(ValueError, match=rf"t\.csv.*row 1 .*'b'.*{remedy}") as caught:
        read_table(path)
    assert "astype" not in str(caught.value)


@pytest.mark.parametrize(("cell", "remedy"), [("< 0.1", "limit"), ("n.d.", "correct it")])
def test_a_column_is_not_given_up_for_a_cell_that_is_no_number(
    tmp_path: Path, cell: str, remedy: str
) -> None:
    rows = "".join(f"{k},{k % 7}.5,x{k}\n" for k in range(40))
    path = write(tmp_path, "t.csv", f"a,dose,name\n{rows}40,{cell},x40\n")
    with pytest.raises(
        ValueError, match=rf"'dose' 1 of 41 entries .*Row 40 .*'{cell}': .*{remedy}"
    ) as caught:
        read_table(path)
    (mended,) = re.findall(r"drop=(\[.*\])$", str(caught.value))
    assert "dose" not in mended, "nobody drops a variable for one cell"


def test_dates_that_recur_are_dates_not_levels_or_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{k % 7}.5,{k % 9},{1 + k // 4:02}.03.2024\n" for k in range(60))
    path = write(tmp_path, "t.csv", f"a,b,day\n{rows}")
    with pytest.raises(ValueError, match=r"'day'.*says when each row was measured"):
        read_table(path)
    assert list(read_table(path, drop=["day"]).columns) == ["a", "b"]


def test_the_other_decimal_sign_is_pointed_out_too(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a;b\n1,5;2\n2,5;3.5\n4;7\n")
    with pytest.raises(ValueError, match=r"row 1 .*'b' is '3\.5'.*decimal=\"\.\""):
        read_table(path, separator=";", decimal=",")


def test_integers_beyond_64_bits_are_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,b\n1,100000000000000000000000000000\n2,3\n4,7.5\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert read_table(path)["b"].to_list() == [1e29, 3.0, 7.5]


def test_what_is_not_a_file_is_called_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, kind in ((tmp_path / "pipe.csv", "pipe"), (tmp_path, "folder"), (Path(os.devnull), "device")):
        with pytest.raises(ValueError, match=rf"is a {kind}"):
            read_table(path)
    with pytest.raises(ValueError, match="NUL"):
        read_table("a\0b.csv")


def test_index_column_can_be_dropped_or_left_unselected(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", ",a,b\n0,1,2\n1,3,5\n2,9,9\n")
    assert read_table(path, drop=["Unnamed: 0"]).columns.to_list() == ["a", "b"]
    assert read_table(path, columns=["b", "a"]).columns.to_list() == ["b", "a"]


def test_missing_file_folder_and_wrong_types(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere.csv"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(TypeError, match=r"columns=\['a'\]"):
        read_table(write(tmp_path, "t.csv", GOOD), columns="a")


@pytest.mark.parametrize(
    ("package", "name", "extra"), [("pyarrow", "t.parquet", "io"), ("anndata", "t.h5ad", "bio")]
)
def test_absent_packages_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'pip install "latentdo\[{extra}\]"'):
        read_table(write(tmp_path, name, b"x"))


def test_numbers_under_the_name_of_a_label_are_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "a,Condition\n1.5,0\n3,1\n4,1\n2,0\n")
    with pytest.warns(DataWarning, match="pass regime_column='Condition'") as caught:
        read_table(path)
    assert caught[0].filename == __file__
    assert read_table(path, "Condition")[0].columns.to_list() == ["a"]


def test_warnings_name_the_columns(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="only 2 rows for 2 variables"):
        read_table(write(tmp_path, "t.csv", "a,b\n1,2\n3,5\n"))
    with pytest.warns(DataWarning, match="of 'b' is .* 'a' is") as caught:
        read_table(write(tmp_path, "t.csv", "a,b\n1,2e9\n3,5e9\n4,7e9\n"))
    assert caught[0].filename == __file__


def test_a_column_that_counts_the_rows_is_pointed_out(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i},{(i * 7919) % 13 / 3},{(i * 104729) % 17 / 5}" for i in range(40)]
    path.write_text("id,a,b\n" + "\n".join(lines) + "\n")
    with pytest.warns(DataWarning, match=r"'id'.*drop"):
        read_table(path)


def test_a_single_row_is_called_that(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="one row"):
        read_table(path)


def test_digits_in_groups_are_not_only_taken_for_decimals(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text('a,b\n"1,062",0.5\n"2,500",0.7\n"3,100",0.1\n')
    with pytest.raises(ValueError, match=r"row 0.*'a'.*1,062.*decimal.*1062"):
        read_table(path)


def test_groups_are_read_as_labels_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,plate,drug\n1,2,p1,none\n3,1,p1,\n2,5,,u0126\n", "utf-8")
    X, groups = read_table(path, group_column="plate", drop=["drug"])
    assert list(X.columns) == ["a", "b"]
    assert groups.tolist()[:2] == ["p1", "p1"]
    assert pd.isna(groups[2])
    X, regimes, groups = read_table(path, "drug", group_column="plate")
    assert list(X.columns) == ["a", "b"]
    assert (regimes.name, groups.name) == ("drug", "plate")
    assert regimes[2] == "u0126"
    with pytest.raises(ValueError, match="no column 'q'"):
        read_table(path, group_column="q")
    with pytest.raises(ValueError, match=r"'plate' cannot hold both .*group_column"):
        read_table(path, "plate", group_column="plate")
    with pytest.raises(ValueError, match="'plate' cannot be a variable"):
        read_table(path, group_column="plate", columns=["a", "plate"])


FOREIGN = """id;a;b;c
s0;1,5;-;3
s1;2,5;5,0;
s2;4,0;3,5;9
s3;3,0;8,0;1
s4;1,0;2,0;4
"""


def test_separator_decimal_sign_and_marks_of_missing_values_are_found_at_once(tmp_path):
    path = tmp_path / "foreign.csv"
    path.write_text(FOREIGN)
    with pytest.raises(ValueError, match="cannot be used as it is") as caught:
        read_table(path)
    (mend,) = re.findall(r"at once by (.*)", str(caught.value))
    X = read_table(path, **(eval(f"dict({mend})") | {"missing": "model"}))
    np.testing.assert_array_equal(X["a"], [1.5, 2.5, 4.0, 3.0, 1.0])
    np.testing.assert_array_equal(X["b"], [np.nan, 5.0, 3.5, 8.0, 2.0])
    with pytest.warns(DataWarning, match="left out.*2 of 5"):
        assert len(read_table(path, **(eval(f"dict({mend})") | {"missing": "drop"}))) == 3


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        (["1", "-", "3", "4"], True),
        (["1", "lost", "lost", "4", "5", "6"], True),
        (["1"] * 12 + ["12a"], False),  # a slip of the pen stands for a number
        (["1"] * 12 + ["<2"], False),  # and a limit says something
    ],
)
def test_words_for_a_missing_value_are_told_from_slips(tmp_path, cells, named):
    path = tmp_path / "marks.csv"
    path.write_text("a,b\n" + "".join(f"{cell},{row**2}\n" for row, cell in enumerate(cells)))
    with pytest.raises(ValueError, match="column 'a'") as caught:
        read_table(path)
    assert ("na_values" in str(caught.value)) == named


def test_row_numbers_are_recognised_where_rows_were_left_out(tmp_path):
    path = tmp_path / "numbered.csv"
    path.write_text("row,a\n" + "".join(f"{row},{'' if row % 5 == 3 else row**3 % 7}\n" for row in range(30)))
    with pytest.warns(DataWarning, match="'row' is used as a variable, but numbers the rows"):
        read_table(path, missing="drop")

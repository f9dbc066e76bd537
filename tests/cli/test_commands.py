import json
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest

from latentdo.outputs import FILES


@pytest.fixture
def fake(monkeypatch, make_result):
    """An estimator that answers at once: the commands are tested here, not the fit."""
    seen = types.SimpleNamespace(arguments=None, fitted=None, error=None, warn=None)

    class Estimator:
        def __init__(self, **arguments):
            seen.arguments = arguments

        def fit(self, X, **known):
            if seen.error is not None:
                raise seen.error
            if seen.warn:
                for _ in range(2):
                    warnings.warn(seen.warn, UserWarning, stacklevel=1)
            seen.fitted = (X, known)
            self.result_ = make_result(
                n_variables=X.shape[1],
                n_samples=len(X),
                n_regimes=2,
                columns=[str(name) for name in X.columns],
                transform=self.transform,
            ).result
            return self

        transform = "none"

    module = types.ModuleType("latentdo.estimator")
    module.LatentInterventionDAG = Estimator
    monkeypatch.setitem(sys.modules, "latentdo.estimator", module)
    seen.kind = Estimator
    return seen


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    X.assign(condition=["ctrl", "drug"] * 20).to_csv(path, index=False)
    return path


def test_fit_writes_the_folder_and_says_where(fake, table, tmp_path, run):
    code, out, _ = run("fit", table, "--out", tmp_path / "r", "--drop", "condition")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == sorted(FILES)
    assert "report.html" in out
    assert "Regimes: 2" in out
    assert list(fake.fitted[0].columns) == ["a", "b", "c"]
    assert fake.arguments == {}
    assert "regimes" not in fake.fitted[1]


def test_a_diagnosis_enters_report_and_json_and_stays(tmp_path, run):
    from latentdo import simulate

    simulate(n_variables=3, n_samples=300, random_state=1).X.to_csv(tmp_path / "d.csv", index=False)
    arguments = ("fit", tmp_path / "d.csv", "--out", tmp_path / "r", "--max-regimes", 6, "--n-init", 1)
    code, out, _ = run(*arguments, "--diagnose", "--json")
    assert code == 0
    said = json.loads(out)["diagnosis"]
    assert said["n_repeats"] == 3
    assert json.loads((tmp_path / "r" / "result.json").read_text("utf-8"))["diagnosis"] == said
    page = tmp_path / "r" / "report.html"
    assert "can and cannot show" in page.read_text("utf-8")
    assert run("report", tmp_path / "r")[0] == 0
    assert "can and cannot show" in page.read_text("utf-8")
    code, out, _ = run(*arguments, "--diagnose", "--overwrite")
    assert code == 0
    assert "ceiling" in out


def test_options_reach_the_estimator_and_only_those_given(fake, table, tmp_path, run):
    options = "--max-regimes 5 --density linear --noise any --transform log1p --n-init 2 --random-state 7"
    pairs = "--edge-prior -1.5 --forbidden a b --forbidden b c --required a c --max-parents 2"
    code, *_ = run(
        "fit",
        table,
        "--out",
        tmp_path / "r",
        "--columns",
        "a",
        "b",
        "c",
        *options.split(),
        *pairs.split(),
    )
    assert code == 0
    assert fake.arguments == {
        "max_regimes": 5,
        "density": "linear",
        "noise": "any",
        "transform": "log1p",
        "n_init": 2,
        "random_state": 7,
        "edge_prior": -1.5,
        "forbidden": [("a", "b"), ("b", "c")],
        "required": [("a", "c")],
        "max_parents": 2,
    }


def test_the_options_are_arguments_of_the_estimator():
    from latentdo.cli.options import EstimatorOptions
    from latentdo.estimator import LatentInterventionDAG

    assert set(EstimatorOptions.__dataclass_fields__) <= set(LatentInterventionDAG().get_params())


def test_known_regimes_and_targets(fake, table, tmp_path, run):
    targets = tmp_path / "t.csv"
    targets.write_text("regime,a,b,c\nctrl,0,0,0\ndrug,0,1,0\n")
    given = ("--regime-column", "condition", "--observational", "ctrl", "--targets", targets)
    code, *_ = run("fit", table, "--out", tmp_path / "r", *given)
    assert code == 0
    assert fake.arguments == {"observational": "ctrl"}
    assert list(fake.fitted[1]["regimes"][:2]) == ["ctrl", "drug"]
    assert fake.fitted[1]["targets"].loc["drug"].tolist() == [0, 1, 0]


def test_numeric_labels_keep_their_type(fake, table, tmp_path, run):
    pd.read_csv(table).assign(condition=[1, 2] * 20).to_csv(table, index=False)
    code, *_ = run(
        "fit", table, "--out", tmp_path / "r", "--regime-column", "condition", "--observational", "1"
    )
    assert code == 0
    assert fake.arguments["observational"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nowhere.csv", "--out", "{tmp}/r"], "nowhere.csv"),
        (["fit", "{table}", "--out", "{tmp}/r"], "condition"),
        (["fit", "{table}", "--out", "{tmp}/r", "--observational", "x"], "need --regime-column"),
        (
            ["fit", "{table}", "--out", "{tmp}/r", "--regime-column", "condition", "--observational", "x"],
            "it holds ctrl, drug",
        ),
        (["fit", "{table}", "--out", "{tmp}"], "--overwrite"),
        (["fit", "{table}", "--out", "{tmp}", "--overwrite"], "not a folder that latentdo wrote"),
        (["evaluate", "{tmp}", "--truth", "{tmp}"], "is not a folder of results"),
        (["evaluate", "{tmp}/none", "--truth", "{tmp}"], "There is no folder"),
        (["evaluate", "{table}", "--truth", "{tmp}"], "is a file, not a folder"),
        (["report", "{tmp}"], "`latentdo fit ... --out FOLDER`"),
        (["fit", "{table}", "--out", "{tmp}/r"], "pass --regime-column condition"),
        (["fit", "{table}", "--out", "{tmp}/r"], "to leave it out"),
        (["fit", "{table}", "--out", "{tmp}/r", "--separator", ";"], "pass --separator ,"),
        (["report", "{table}"], "not a safetensors file"),
        (["simulate", "--out", "{tmp}/s", "--preset", "nonsense"], "nonsense"),
        (["simulate", "--out", "{tmp}/s", "--n-samples", "-4"], "--n-samples"),
    ],
)
def test_errors_are_one_message_without_a_traceback(fake, table, tmp_path, run, arguments, message):
    filled = [argument.format(tmp=tmp_path, table=table) for argument in arguments]
    code, out, err = run(*filled)
    assert code == 1
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert not (tmp_path / "r").exists()
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('pass missing="drop" to leave out these rows', "pass --missing drop to leave out these rows"),
        ("pass drop=['Unnamed: 0', 'b'] to", "pass --drop 'Unnamed: 0' b to"),
        ("max_regimes=3; raise max_regimes.", "--max-regimes 3; raise --max-regimes."),
        ('use transform="log1p" (values above -1)', "use --transform log1p (values above -1)"),
        ("pass overwrite=True (--overwrite) to", "pass --overwrite to"),
        ("pass separator='\\t'.", "pass --separator '\\t'."),
        ("pass header=False if", "pass --no-header if"),
        ("columns 'n_init', 'max_parents' and x_drop=1", "columns 'n_init', 'max_parents' and x_drop=1"),
        ("n_init=-1 must be", "--n-init -1 must be"),
        ("pass observational='wt' if it is, or observational=None if there is none.",
         "pass --observational wt if it is."),
    ],
)  # fmt: skip
def test_messages_speak_of_flags(message, words):
    from latentdo.cli.messages import in_flags

    assert in_flags(message) == words


def test_every_flag_that_messages_name_exists(run):
    from latentdo.cli.messages import _FLAGS

    text = "".join(run(command, "--help")[1] for command in ("fit", "simulate", "tune", "bootstrap"))
    assert [flag for flag in (*_FLAGS.values(), "--no-header") if flag not in text] == []


def test_text_files_of_every_kind(fake, tmp_path, run):
    path = tmp_path / "data.csv"
    path.write_bytes("1,5\t2\t1\tgr\xfcn\n3\t5\t4\trot\n9,5\t7\t0\trot\n4\t1\t1\trot\n".encode("latin-1"))
    given = ("--separator", "\\t", "--decimal", ",", "--encoding", "latin-1", "--no-header", "--drop", "X4")
    code, _, err = run("fit", path, "--out", tmp_path / "r", *given)
    assert code == 0, err
    assert fake.fitted[0].to_numpy().tolist()[:2] == [[1.5, 2.0, 1.0], [3.0, 5.0, 4.0]]


def test_a_taken_folder_is_refused_before_the_fit(fake, table, tmp_path, run):
    fake.error = AssertionError("the fit must not start")
    code, *_ = run("fit", table, "--out", tmp_path)
    assert code == 1


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["fit"], ["fit", "x", "--out", "y", "--max-regimes", "many"]]
)
def test_wrong_usage_is_2(run, arguments):
    code, out, err = run(*arguments)
    assert code == 2
    assert err
    assert out == ""


def test_interrupt_is_130_and_leaves_nothing(fake, table, tmp_path, run):
    fake.error = KeyboardInterrupt()
    code, _, err = run("fit", table, "--out", tmp_path / "r", "--drop", "condition")
    assert code == 130
    assert "interrupted" in err
    assert not (tmp_path / "r").exists()


def test_warnings_are_plain_lines_on_stderr(fake, table, tmp_path, run):
    fake.warn = "the sea is rough"
    code, out, err = run("fit", table, "--out", tmp_path / "r", "--drop", "condition")
    assert code == 0
    assert err.count("warning: the sea is rough\n") == 1
    assert "rough" not in out
    assert ".py" not in err


def test_json_is_all_that_is_on_stdout(fake, table, tmp_path, run):
    code, out, _ = run("fit", table, "--out", tmp_path / "r", "--drop", "condition", "--json")
    assert code == 0
    content = json.loads(out)
    assert content["variables"] == ["a", "b", "c"]
    assert content["out"].endswith("r")


def test_hostile_column_names_do_no_harm(fake, tmp_path, run):
    names = ["[bold red]x[/]", "\x1b[2J", ":smile:", "<script>alert(1)</script>"]
    path = tmp_path / "odd.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=names).to_csv(path, index=False)
    code, out, _ = run("fit", path, "--out", tmp_path / "r")
    assert code == 0
    assert "\x1b[2J" not in out
    assert "<script>alert" not in (tmp_path / "r" / "report.html").read_text("utf-8")
    found = json.loads((tmp_path / "r" / "result.json").read_text())["variables"]
    assert found == names


def test_rows_that_were_dropped_leave_gaps(fake, tmp_path, run):
    path = tmp_path / "gaps.csv"
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(31, 3)), columns=["a", "b", "c"])
    X.iloc[4, 1] = np.nan
    X.to_csv(path, index=False)
    code, *_ = run("fit", path, "--out", tmp_path / "r", "--missing", "drop")
    assert code == 0
    rows = pd.read_csv(tmp_path / "r" / "regimes.csv")["row"]
    assert rows.tolist() == [row for row in range(31) if row != 4]


def test_demo_is_honest(fake, tmp_path, run):
    code, out, err = run("demo", "--out", tmp_path / "d", "--max-regimes", "2")
    assert code == 0, err
    assert fake.arguments["max_regimes"] == 2
    assert (fake.arguments["transform"], fake.arguments["density"]) == ("log", "linear")
    assert fake.fitted[0].shape == (2000, 11)
    assert fake.fitted[1].get("regimes") is None
    assert "Rand index" in out
    assert out.count("empty graph  ") == 3
    code, out, _ = run("demo", "--out", tmp_path / "d", "--overwrite", "--json")
    for name in ("d", "d-cytometry"):
        report = (tmp_path / name / "report.html").read_text("utf-8")
        assert "The truth is known here" in report or "Rand index" in report
    content = json.loads(out)["cytometry"]
    assert json.loads(out)["service"]["wrong_edges"] > 0, "the fake knows nothing of the truth"
    assert content["reference_graphs"]["17 edges"]["empty graph"]["SHD"] == 17
    assert set(content["agreement"]) == {"adjusted_rand_index", "normalized_mutual_information"}


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "fit", "simulate", "evaluate", "report"):
        assert command in out.split()
    assert run("--version")[1].strip()[0].isdigit()


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "latentdo", "nonsense"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_end_to_end_with_the_real_estimator(tmp_path, run):
    assert run("simulate", "--out", tmp_path / "s", "--n-variables", "3", "--n-samples", "600")[0] == 0
    data, folder = tmp_path / "s" / "data.csv", tmp_path / "r"
    code, out, err = run("fit", data, "--out", folder, "--max-regimes", "5", "--n-init", "1", "--json")
    assert code == 0, err
    assert json.loads(out)["variables"] == ["X1", "X2", "X3"]
    code, out, _ = run("evaluate", folder, "--truth", tmp_path / "s", "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["graph"]["shd"] == 0
    assert scores["regimes"]["adjusted_rand_index"] > 0.8


def test_hostile_names_with_the_real_estimator(tmp_path, run):
    from latentdo.scm import simulate

    names = ['=1+1,"x"', "<b>\n{{ 1 }}", "NA"]
    X = simulate(n_variables=3, n_samples=300, random_state=1).X.set_axis(names, axis=1)
    X.to_csv(tmp_path / "odd.csv", index=False)
    folder = tmp_path / "r"
    code, out, err = run(
        "fit", tmp_path / "odd.csv", "--out", folder, "--max-regimes", "4", "--n-init", "1", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["variables"] == names
    assert run("report", folder, "--data", tmp_path / "odd.csv")[0] == 0
    assert run("evaluate", folder, "--truth", folder)[0] == 0


def test_values_that_look_like_flags_can_be_pasted():
    from latentdo.cli.messages import in_flags

    assert in_flags("pass na_values=['-', '?']") == "pass --na-values=- --na-values='?'"

import json

import pytest
from cyclopts import CycloptsError

QUICK = ("--density", "linear", "--n-init", 1, "--json")


@pytest.fixture
def fitted(run, small, tmp_path):
    """Fit, and return the configuration that the fit has seen."""

    def call(*arguments):
        code, out, err = run("fit", small, "--out", tmp_path / "r", "--overwrite", *QUICK, *arguments)
        assert code == 0, err
        return json.loads(out)["configuration"], err

    return call


def test_flags_win_over_the_environment_and_that_over_the_file(fitted, tmp_path, monkeypatch):
    file = tmp_path / "c.toml"
    file.write_text("max_regimes = 3\nmax_parents = 1\nrandom_state = 5\n")
    monkeypatch.setenv("LATENTDO_MAX_REGIMES", "4")
    monkeypatch.setenv("LATENTDO_MAX_PARENTS", "2")
    found, _ = fitted("--config", file, "--max-regimes", 5)
    assert (found["max_regimes"], found["max_parents"], found["random_state"]) == (5, 2, 5)


def test_a_table_of_the_command_wins_and_those_of_others_do_not_count(fitted, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        'max_regimes = 3\nn_resamples = 9\nforbidden = [["X1", "X2"]]\ntiers = [["X1", "X2"], ["X3"]]\n'
        "[fit]\nmax_regimes = 4\n[bootstrap]\nmax_regimes = 7\n"
    )
    found, _ = fitted("--config", file)
    assert found["max_regimes"] == 4
    assert found["forbidden"] == [["X1", "X2"]]
    assert found["tiers"] == [["X1", "X2"], ["X3"]]


def test_the_noise_may_come_from_anywhere(fitted, tmp_path, monkeypatch):
    (tmp_path / "c.toml").write_text('noise = "any"')
    assert fitted()[0]["noise"] == "auto"
    assert fitted("--config", tmp_path / "c.toml")[0]["noise"] == "any"
    monkeypatch.setenv("LATENTDO_NOISE", "gaussian")
    assert fitted()[0]["noise"] == "gaussian"


def test_the_environment_may_name_the_file(fitted, tmp_path, monkeypatch):
    (tmp_path / "c.toml").write_text("max_regimes = 2")
    monkeypatch.setenv("LATENTDO_CONFIG", str(tmp_path / "c.toml"))
    assert fitted()[0]["max_regimes"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("max_regime = 3", "there is no option 'max_regime'; did you mean 'max_regimes'?"),
        ("[fit]\nn_resamples = 3", "table [fit]: there is no option 'n_resamples'"),
        ("[fits]\nmax_regimes = 3", "no command 'fits' for the table; did you mean 'fit'?"),
        ("max_regimes =", "is not TOML"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_key(run, small, tmp_path, content, message):
    file = tmp_path / "c.toml"
    file.write_text(content)
    code, out, err = run("fit", small, "--out", tmp_path / "r", "--config", file)
    assert (code, out) == (1, "")
    assert message in err
    assert not (tmp_path / "r").exists()


def test_a_wrong_value_names_key_and_file(run, small, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('max_regimes = "many"')
    code, _, err = run("fit", small, "--out", tmp_path / "r", "--config", file)
    assert code == 1
    assert "max_regimes" in err
    assert "c.toml" in err


def parsed(monkeypatch, tmp_path, *, flags=(), environment=None, file=None):
    """What the options of a fit are, without the fit."""
    from latentdo.cli import app

    for variable, value in (environment or {}).items():
        monkeypatch.setenv(variable, value)
    if file is not None:
        (tmp_path / "c.toml").write_text(file)
        flags = (*flags, "--config", str(tmp_path / "c.toml"))
    words = ["fit", "x.csv", "--out", "r", *flags]
    _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    model, read = (bound.arguments.get(name) for name in ("model", "read"))
    return (model.given() if model else {}) | ({"columns": read.columns, "drop": read.drop} if read else {})


@pytest.mark.parametrize(
    ("flags", "environment", "file"),
    [
        (["--forbidden", "a", "b", "--forbidden", "c", "d d"], {}, None),
        ([], {"LATENTDO_FORBIDDEN": '[["a", "b"], ["c", "d d"]]'}, None),
        ([], {}, 'forbidden = [["a", "b"], ["c", "d d"]]'),
        ([], {}, 'forbidden = [["x", "y"]]\n[fit]\nforbidden = [["a", "b"], ["c", "d d"]]'),
    ],
)
def test_edges_mean_the_same_wherever_they_are_written(monkeypatch, tmp_path, flags, environment, file):
    found = parsed(monkeypatch, tmp_path, flags=flags, environment=environment, file=file)
    assert found["forbidden"] == [("a", "b"), ("c", "d d")]


@pytest.mark.parametrize(
    ("flags", "environment", "file"),
    [
        (["--tiers", 'a,"b, c"', "--tiers", '" d"'], {}, None),
        ([], {"LATENTDO_TIERS": '[["a", "b, c"], [" d"]]'}, None),
        ([], {}, 'tiers = [["a", "b, c"], [" d"]]'),
    ],
)
def test_tiers_mean_the_same_wherever_they_are_written(monkeypatch, tmp_path, flags, environment, file):
    found = parsed(monkeypatch, tmp_path, flags=flags, environment=environment, file=file)
    assert found["tiers"] == [["a", "b, c"], [" d"]]


def test_words_in_the_environment_are_those_of_a_flag(monkeypatch, tmp_path):
    words = {"LATENTDO_REQUIRED": "a 'b c'", "LATENTDO_TIERS": "a,b c", "LATENTDO_DROP": "id 'time of day'"}
    found = parsed(monkeypatch, tmp_path, environment=words)
    assert found["required"] == [("a", "b c")]
    assert found["tiers"] == [["a", "b"], ["c"]]
    assert found["drop"] == ["id", "time of day"]


def test_an_empty_list_is_an_answer(monkeypatch, tmp_path):
    found = parsed(monkeypatch, tmp_path, environment={"LATENTDO_DROP": "[]"}, file='drop = ["a"]')
    assert found["drop"] == []


DEEP = 5000
WRONG_IN_A_FILE = [
    'forbidden = "X1 X2"',
    'forbidden = ["X1", "X2"]',
    'forbidden = [["X1", "X2", "X3"], ["X4"]]',
    'forbidden = [["X1", 2]]',
    'forbidden = {X1 = "X2"}',
    "[[forbidden]]\nX1 = 1",
    "required = true",
    'tiers = "X1"',
    'tiers = ["X1,X2"]',
    'tiers = [["X1", ["X2"]]]',
    'columns = "X1"',
    "columns = []",
    "columns = [1.5]",
    'drop = [["X1"]]',
    'header = "false"',
    "header = 0",
    "max_regimes = true",
    "max_regimes = 2.7",
    'max_regimes = "8"',
    "max_regimes = [8]",
    "max_regimes.a.b = 1",
    f"max_regimes = {'9' * 400}",
    f"max_regimes = 0x{'f' * DEEP}",
    f"max_regimes = {'[' * 60}{']' * 60}",
    f"edge_prior = {'9' * 400}",
    "edge_prior = inf",
    "edge_prior = nan",
    'edge_prior = "1"',
    "edge_prior = 1979-05-27",
    "out = 1979-05-27",
    "observational = true",
    "observational = 1.5",
    'density = ["linear"]',
    'json = "yes"',
]
NOT_TOML = [
    f"x = {'[' * DEEP}",
    f"max_regimes = {'9' * DEEP}",
    "a = \udcff",
    "a = 1\0",
    f"{'a.' * DEEP}a = 1",
]


@pytest.mark.parametrize("content", [*WRONG_IN_A_FILE, *NOT_TOML], ids=lambda text: text[:40])
def test_a_value_that_is_not_what_the_option_takes_is_refused_by_file_and_entry(
    monkeypatch, tmp_path, content
):
    (tmp_path / "c.toml").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"c\.toml") as caught:
        parsed(monkeypatch, tmp_path, flags=["--config", str(tmp_path / "c.toml")])
    if content in WRONG_IN_A_FILE:
        name = content.strip("[").partition("=")[0].partition("]")[0].partition(".")[0].strip()
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REQUIRED", "X1"),
        ("REQUIRED", "X1 X2 X3 X4"),
        ("REQUIRED", '["X1", "X2"]'),
        ("REQUIRED", '[["X1", "X2", "X3"]]'),
        ("REQUIRED", ""),
        ("TIERS", '["X1"]'),
        ("DROP", "5' end"),
        ("DROP", "[X1]"),
        ("DROP", '["X1"]\nmax_regimes = 3'),
        ("DROP", "[" * DEEP),
        ("COLUMNS", "[]"),
        ("HEADER", "maybe"),
        ("MAX_REGIMES", "2.7"),
        ("MAX_REGIMES", "9" * 400),
        ("EDGE_PRIOR", "[1]"),
    ],
)
def test_a_variable_that_is_not_what_the_option_takes_is_refused_by_name(monkeypatch, tmp_path, name, value):
    with pytest.raises((ValueError, CycloptsError)) as caught:
        parsed(monkeypatch, tmp_path, environment={f"LATENTDO_{name}": value})
    assert f"LATENTDO_{name}" in str(caught.value)


@pytest.mark.parametrize(
    "flags",
    [
        ["--max-regimes", "2.7"],
        ["--max-regimes", "9" * 400],
        ["--random-state", "9" * DEEP],
        ["--forbidden", '[["a", "b"]]'],
        ["--tiers", 'a,"b', "--tiers", 'c"'],
    ],
)
def test_a_flag_that_is_not_what_the_option_takes_is_refused_by_name(monkeypatch, tmp_path, flags):
    with pytest.raises((ValueError, CycloptsError)) as caught:
        parsed(monkeypatch, tmp_path, flags=flags)
    assert flags[0].removeprefix("--") in str(caught.value)


def test_a_missing_file_is_named(run, small, tmp_path):
    code, _, err = run("fit", small, "--out", tmp_path / "r", "--config", tmp_path / "none.toml")
    assert code == 1
    assert "none.toml" in err


def test_a_variable_that_no_option_reads_is_warned_of(fitted, monkeypatch):
    monkeypatch.setenv("LATENTDO_MAX_REGIME", "3")
    found, err = fitted()
    assert found["max_regimes"] == 16
    assert "did you mean 'LATENTDO_MAX_REGIMES'?" in err


def test_every_command_reads_a_file(run, tmp_path):
    from latentdo.cli import app

    without = [name for name in app if not name.startswith("-") and "--config" not in run(name, "--help")[1]]
    assert without == ["completion", "warm-up"]  # which have no settings
    file = tmp_path / "c.toml"
    file.write_text(f"[simulate]\nout = {json.dumps(str(tmp_path / 's'))}\nn_variables = 3\nn_samples = 90\n")
    code, _, err = run("simulate", "--config", file)
    assert code == 0, err
    about = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert about["arguments"]["n_variables"] == 3
    assert "config" not in about["arguments"]

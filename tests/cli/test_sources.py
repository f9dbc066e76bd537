import json

import pytest

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
    assert code == 2
    assert "max_regimes" in err
    assert "c.toml" in err.replace("\n", "").replace("│", "").replace(" ", "")


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
    assert without == ["completion"]
    file = tmp_path / "c.toml"
    file.write_text(f"[simulate]\nout = {json.dumps(str(tmp_path / 's'))}\nn_variables = 3\nn_samples = 90\n")
    code, _, err = run("simulate", "--config", file)
    assert code == 0, err
    about = json.loads((tmp_path / "s" / "simulation.json").read_text())
    assert about["arguments"]["n_variables"] == 3
    assert "config" not in about["arguments"]

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from latentdo.choices import OPTIONS
from latentdo.cli.options import EstimatorOptions
from latentdo.estimator import LatentInterventionDAG

QUICK = ("--density", "linear", "--max-regimes", 4, "--n-init", 1)


def test_the_help_tells_the_defaults_of_the_estimator():
    for name, value in LatentInterventionDAG().get_params().items():
        if value is None or name not in EstimatorOptions.__dataclass_fields__:
            continue
        if name in OPTIONS:
            about = OPTIONS[name].help
        else:
            about = re.search(rf"    {name}\n((?:        .*\n)+)", EstimatorOptions.__doc__)[1]
        assert f"Default: {value}" in " ".join(about.split())


def test_a_report_written_again_keeps_the_bootstrap(run, small, tmp_path):
    assert run("bootstrap", small, "--out", tmp_path / "r", "--n-resamples", 2, *QUICK)[0] == 0
    page = tmp_path / "r" / "report.html"
    before = page.read_text("utf-8")
    assert "resampled rows" in before
    assert run("report", tmp_path / "r", "--data", small)[0] == 0
    assert page.read_text("utf-8") == before
    code, _, err = run("export", tmp_path / "r", tmp_path / "g.json", "--consensus")
    assert code == 0, err
    assert "support" in (tmp_path / "g.json").read_text()


@pytest.mark.parametrize("ending", ["dot", "graphml", "json", "csv"])
def test_export_by_the_ending(run, small, tmp_path, ending):
    assert run("fit", small, "--out", tmp_path / "r", *QUICK)[0] == 0
    target = tmp_path / f"graph.{ending}"
    code, *_ = run("export", tmp_path / "r", target)
    assert code == 0
    assert "X1" in target.read_text("utf-8")
    assert run("export", tmp_path / "r", target)[0] == 1
    assert run("export", tmp_path / "r", tmp_path / "graph.png")[0] == 1
    code, _, err = run("export", tmp_path / "r", tmp_path / "c.dot", "--consensus")
    assert code == 1
    assert "holds no bootstrap" in err


def test_cells_in_and_out(run, tmp_path):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    raf = rng.normal(size=200)
    cells = anndata.AnnData(
        np.column_stack([raf, raf + 0.3 * rng.normal(size=200), rng.normal(size=200)]),
        obs=pd.DataFrame(
            {"perturbation": ["control"] * 100 + ["drug"] * 50 + [None] * 50},
            index=[f"cell{i}" for i in range(200)],
        ),
        var=pd.DataFrame(index=["Raf", "Mek", "Unused"]),
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    code, _, err = run("fit", tmp_path / "cells.h5ad", "--out", tmp_path / "latent", *QUICK)
    assert code == 0
    assert "pass --regime-column perturbation to use it" in err
    given = ("--regime-column", "perturbation", "--drop", "Unused")
    code, out, err = run("fit", tmp_path / "cells.h5ad", "--out", tmp_path / "r", *given, *QUICK, "--json")
    assert code == 0, err
    assert json.loads(out)["configuration"]["observational"] == "control"
    target = tmp_path / "out.h5ad"
    assert run("export", tmp_path / "r", target)[0] == 1  # without cells there is nothing to write into
    code, _, err = run("export", tmp_path / "r", target, "--cells", tmp_path / "cells.h5ad")
    assert code == 0, err
    back = anndata.read_h5ad(target)
    assert back.varp["latentdo_edge_probabilities"].shape == (3, 3)
    assert back.obs["latentdo_regime"].notna().all()


def test_prior_knowledge_from_a_file_joins_the_flags(run, small, tmp_path):
    (tmp_path / "k.toml").write_text('forbidden = [["X1", "X2"]]\n[edge_prior]\n"X1 -> X3" = 3.0\n')
    arguments = ("fit", small, "--out", tmp_path / "r", *QUICK, "--knowledge", tmp_path / "k.toml")
    code, out, err = run(*arguments, "--forbidden", "X2", "X1", "--json")
    assert code == 0, err
    configuration = json.loads(out)["configuration"]
    assert configuration["forbidden"] == [["X1", "X2"], ["X2", "X1"]]
    assert configuration["edge_prior"][0][2] == 3.0
    assert {"X1", "X2"} not in [{edge["from"], edge["to"]} for edge in json.loads(out)["edges"]]
    code, _, err = run(*arguments, "--overwrite", "--edge-prior", -1)
    assert code == 1
    assert "both say something about edge_prior" in err.replace("--edge-prior;", "edge_prior;")


def test_a_cycle_in_required_edges_is_named(run, small, tmp_path):
    (tmp_path / "k.csv").write_text("cause,effect,knowledge\nX1,X2,required\nX2,X1,required\n")
    code, _, err = run("fit", small, "--out", tmp_path / "r", "--knowledge", tmp_path / "k.csv")
    assert code == 1
    assert "k.csv: the required edges form a cycle: X1 -> X2 -> X1" in err


def test_bench(run):
    sizes = ("--density", "linear", "--n-variables", 3, "--n-samples", 200, 300, "--n-init", 1)
    code, out, err = run("bench", *sizes, "--json")
    assert code == 0, err
    fits = json.loads(out)["fits"]
    assert [fit["rows"] for fit in fits] == [200, 300]
    assert all(fit["seconds"] > 0 and fit["hamming"] <= 6 for fit in fits)
    code, out, _ = run("bench", *sizes)
    assert code == 0
    assert "empty graph" in out


def test_completion_of_commands_options_and_values(run):
    code, script, _ = run("completion", "bash")
    assert code == 0
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    for words, expected in (
        (["fi"], "fit"),
        (["fit", "--max-reg"], "--max-regimes"),
        (["fit", "--solver", "pa"], "paper"),
    ):
        line = " ".join(f'"{word}"' for word in ["latentdo", *words])
        ask = (
            f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
            'name=$(complete -p latentdo | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
            f'$name latentdo "{words[-1]}" ""; echo "${{COMPREPLY[@]}}"'
        )
        command = ["bash", "-c", f"{script}\n{ask}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        assert expected in done.stdout.split(), done


def test_every_command_that_writes_answers_machines(run, tmp_path):
    code, out, _ = run("simulate", "--out", tmp_path / "s", "--n-variables", 3, "--n-samples", 200, "--json")
    assert code == 0
    written = json.loads(out)
    assert (written["variables"], written["regimes"]) == (3, 4)
    assert run("fit", tmp_path / "s" / "data.csv", "--out", tmp_path / "r", *QUICK)[0] == 0
    for arguments, path in (
        (["report", tmp_path / "r"], tmp_path / "r" / "report.html"),
        (["export", tmp_path / "r", tmp_path / "g.dot"], tmp_path / "g.dot"),
    ):
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert json.loads(out) == {"out": str(path)}

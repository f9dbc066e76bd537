import numpy as np
import pytest

from latentdo import LatentInterventionDAG, read_knowledge, simulate
from latentdo.graphs.constraints import Constraints

NAMES = ["Raf", "Mek", "Erk"]


def read(tmp_path, text, ending="toml"):
    path = tmp_path / f"knowledge.{ending}"
    path.write_text(text, encoding="utf-8")
    return read_knowledge(path, NAMES)


def test_everything_that_toml_can_say(tmp_path):
    found = read(
        tmp_path,
        'forbidden = [["Erk", "Raf"]]\nrequired = [["Raf", "Mek"]]\ntiers = [["Raf"], ["Mek", "Erk"]]\n'
        'max_parents = 2\n[edge_prior]\nothers = -1.0\n"Raf -> Erk" = 2\n',
    )
    assert found["forbidden"] == [("Erk", "Raf")]
    assert found["required"] == [("Raf", "Mek")]
    assert found["tiers"] == [["Raf"], ["Mek", "Erk"]]
    assert found["max_parents"] == 2
    assert found["edge_prior"].tolist() == [[-1, -1, 2], [-1, -1, -1], [-1, -1, -1]]


def test_a_list_of_edges_in_csv(tmp_path):
    text = "Cause,Effect,Knowledge\nRaf,Mek,required\nErk,Raf,forbidden\nMek,Erk,1.5\n"
    found = read(tmp_path, text, "csv")
    assert found["required"] == [("Raf", "Mek")]
    assert found["forbidden"] == [("Erk", "Raf")]
    usual = -0.5 * np.log(3)
    assert found["edge_prior"][1, 2] == 1.5
    assert found["edge_prior"][0, 1] == pytest.approx(usual)


def test_a_square_table_in_csv_in_any_order(tmp_path):
    found = read(tmp_path, ",Erk,Raf\nMek,2,\nRaf,-3,0\n", "csv")["edge_prior"]
    assert found[1, 2] == 2.0
    assert found[0, 2] == -3.0
    assert found[1, 0] == pytest.approx(-0.5 * np.log(3))  # an empty cell is no opinion


@pytest.mark.parametrize(
    ("text", "ending", "message"),
    [
        ('required = [["Raf", "Mek"], ["Mek", "Erk"], ["Erk", "Raf"]]', "toml", "cycle: Raf -> Mek -> Erk -> Raf"),
        ('required = [["Raf", "Mek"]]\nforbidden = [["Raf", "Mek"]]', "toml", "required edge Raf -> Mek is ruled out"),
        ('required = [["Erk", "Raf"]]\ntiers = [["Raf"], ["Erk"]]', "toml", "required edge Erk -> Raf is ruled out"),
        ('required = [["Raf", "Erk"], ["Mek", "Erk"]]\nmax_parents = 1', "toml", "Erk has 2 required parents"),
        ('tiers = [["Raf"], ["Raf"]]', "toml", "'Raf' occurs in two tiers"),
        ('required = [["Raff", "Mek"]]', "toml", "names 'Raff', which is not a variable; did you mean 'Raf'?"),
        ('requierd = [["Raf", "Mek"]]', "toml", "no entry 'requierd'; did you mean 'required'?"),
        ('required = ["Raf"]', "toml", "not a pair"),
        ("max_parents = true", "toml", "whole number"),
        ('[edge_prior]\n"Raf Mek" = 1', "toml", 'write "cause -> effect"'),
        ('[edge_prior]\n"Raf -> Mek" = inf', "toml", "finite number of log-odds; use forbidden or required"),
        ("required = [", "toml", "not TOML"),
        ("cause,effect,knowledge\nRaf,Mek,perhaps\n", "csv", "line 2, knowledge 'perhaps'"),
        ("cause,effect,knowledge\nRaf,Mek\n", "csv", "line 2 has 2 fields"),
        (",Raf\nMek,x\n", "csv", "line 2, column Raf"),
        (",Raf\nMex,1\n", "csv", "line 2 names 'Mex'"),
        ("a,b\n1,2\n", "csv", "list with cause, effect, knowledge, or a square table"),
        ("", "csv", "the file is empty"),
        ("{}", "json", "must be .toml or .csv"),
        ('forbidden = "Raf Mek"', "toml", "forbidden='Raf Mek'"),
        ('forbidden = [["Raf", "Mek", "Erk"]]', "toml", "entry 1"),
        ('forbidden = [["Raf", "Mek"], ["Erk", 1]]', "toml", "entry 2"),
        ('tiers = ["Raf"]', "toml", "tiers[0]"),
        (f"max_parents = {'9' * 5000}", "toml", "digits"),
        (f"edge_prior = {'9' * 400}", "toml", "edge_prior"),
        ('edge_prior = "2"', "toml", "edge_prior is the text '2'"),
        ("max_parents = 1979-05-27", "toml", "max_parents"),
        ("tiers = " + "[" * 5000, "toml", "too deeply"),
        ('[edge_prior]\n"Raf -> Mek" = 1\n"Raf->Mek" = 2', "toml", "Raf -> Mek are given twice"),
        ('[edge_prior]\n"Raf -> Raf" = 1', "toml", "Raf -> Raf"),
        ("cause,effect,knowledge\nRaf,Mek,1\nRaf,Mek,2\n", "csv", "Raf -> Mek are given twice"),
        (",Raf,Raf\nMek,1,2\n", "csv", "Mek -> Raf are given twice"),
        ("cause,effect,knowledge\nRaf,Mek\0,1\n", "csv", "NUL"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, text, ending, message):
    with pytest.raises(ValueError, match=r"knowledge\.") as caught:
        read(tmp_path, text, ending)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "", "ab", b"ab", 0, False, True, {"a": "b"}, ["ab"], ["a", "b"], [("a",)], [("a", "b", "c")], [{"a", "b"}],
        [("a", 1)], [("a", ["b"])], [("a", None)], [5], [None], iter([("a", "b")]), np.array("ab"), np.zeros((2, 2)),
        [10**5000],
    ],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_what_is_not_a_list_of_pairs_is_refused_in_python_too(value):
    for name in ("forbidden", "required"):
        with pytest.raises(ValueError, match=name):
            Constraints.build(["a", "b"], **{name: value})


@pytest.mark.parametrize(
    "value",
    [
        "",
        "ab",
        0,
        True,
        {"a": ["b"]},
        ["a", "b"],
        [["a", 1]],
        [5],
        {("a",), ("b",)},
        iter([["a"]]),
        [[["a"]]],
    ],
    ids=lambda value: str(type(value)),
)
def test_what_is_not_a_list_of_tiers_is_refused_in_python_too(value):
    with pytest.raises(ValueError, match="tiers"):
        Constraints.build(["a", "b"], tiers=value)


@pytest.mark.parametrize(
    "value", [[("a", "b")], (["a", "b"],), {("a", "b")}, np.array([["a", "b"]]), [np.array(["a", "b"])]]
)
def test_pairs_may_come_in_any_collection(value):
    assert Constraints.build(["a", "b"], required=value).required.tolist() == [[False, True], [False, False]]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        read_knowledge(tmp_path / "none.toml", NAMES)


def test_the_fit_obeys(tmp_path):
    data = simulate(n_variables=3, n_samples=300, random_state=1)
    (cause, effect), *_ = np.argwhere(data.adjacency.to_numpy())
    names = list(data.X.columns)
    path = tmp_path / "k.csv"
    path.write_text(f"cause,effect,knowledge\n{names[cause]},{names[effect]},forbidden\n")
    arguments = read_knowledge(path, names)
    est = LatentInterventionDAG(density="linear", max_regimes=4, n_init=1, **arguments).fit(data.X)
    assert est.adjacency_.loc[names[cause], names[effect]] == 0


def test_certain_edges_are_required_and_not_reversed():
    certain = np.zeros((3, 3), dtype=bool)
    certain[0, 1] = True
    held = Constraints.build(NAMES, required=[("Mek", "Erk")]).holding(certain)
    assert held.required[0, 1]
    assert held.required[1, 2]
    assert not held.allowed[1, 0]
    assert held.allowed[0, 1]
    assert held.n_open == 1

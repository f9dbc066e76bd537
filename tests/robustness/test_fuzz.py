"""Random damage to files, arguments and saved models: an error of the promised kind, or a usable result.

Hypothesis draws the same examples in every run. ``tools/fuzz.py`` drives the same entry points by coverage, for as
long as one likes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as from_safetensors

from latentdo import BootstrapDAG, LatentInterventionDAG, read_table
from latentdo.persistence import ResultFileError, load_arrays, save_arrays

FAST = settings(max_examples=60)


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    x[:, 1] += 2.0 * x[:, 0]
    x[: n // 3, 1] = 9.0 + rng.normal(size=n // 3)
    return pd.DataFrame(x, columns=["a", "b"])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a fitted model."""
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    LatentInterventionDAG(max_regimes=3, n_init=1).fit(table()).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def saved_bootstrap(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "bootstrap.safetensors"
    BootstrapDAG(LatentInterventionDAG(max_regimes=2, n_init=1), n_resamples=2).fit(table()).save(path)
    return path.read_bytes()


@st.composite
def damage(draw: Any) -> Any:
    """A function that damages bytes: flips, cuts, repeats, and foreign bytes at any place."""
    kind = draw(st.sampled_from(["flip", "cut", "repeat", "insert", "length"]))
    where, amount = draw(st.floats(0.0, 1.0)), draw(st.integers(1, 64))
    foreign = draw(st.binary(min_size=1, max_size=16))

    def apply(content: bytes) -> bytes:
        at = int(where * (len(content) - 1))
        if kind == "flip":
            return content[:at] + bytes([content[at] ^ (1 << amount % 8)]) + content[at + 1 :]
        if kind == "cut":
            return content[:at]
        if kind == "repeat":
            return content[: at + amount] + content[at:]
        if kind == "insert":
            return content[:at] + foreign + content[at:]
        return foreign.ljust(8, b"\x00")[:8] + content[8:]  # where safetensors keeps the length of its header

    return apply


def read_or_refuse(path: Any, **options: Any) -> None:
    """The contract of ``read_table``: finite numbers under unique names, or one of these errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_table(path, **options)
        except (ValueError, TypeError):
            return
    X = found[0] if isinstance(found, tuple) else found
    assert np.isfinite(X.to_numpy()).all()
    assert X.columns.is_unique
    assert len(X) > 0


@FAST
@given(
    content=st.binary(max_size=200),
    ending=st.sampled_from(["csv", "tsv", "csv.gz", "csv.xz", "parquet", "h5ad"]),
)
def test_readers_survive_any_bytes(tmp_path, content, ending):
    path = tmp_path / f"data.{ending}"
    path.write_bytes(content)
    read_or_refuse(path)


CELLS = st.sampled_from(
    [
        "1",
        "-2.5",
        "1e400",
        "0.1e257301222821",
        "nan",
        "inf",
        "",
        " ",
        '"',
        "'",
        "\x00",
        "0x10",
        "1_000",
        "1,5",
        "\u0661",
        "a",
        "\r",
        "=1+1",
    ]
)


@FAST
@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=6),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    regime_column=st.sampled_from([None, "1", "a"]),
    header=st.booleans(),
)
def test_text_reader_survives_odd_cells(tmp_path, rows, separator, end, regime_column, header):
    path = tmp_path / "data.csv"
    path.write_text(end.join(separator.join(row) for row in rows), encoding="utf-8")
    read_or_refuse(path, regime_column=regime_column, header=header)


NUMBERS = (
    "1",
    "-2.5",
    "+6",
    ".5",
    "5.",
    "1E5",
    "4.9e-324",
    "9007199254740993",
    "9" * 30,
    " 7",
    "8 ",
    '"1"',
    "-0",
)
ODDITIES = (
    '"3""4"',
    '"5\n"',
    '"',
    "",
    "NA",
    "\x0b1",
    "1\x0c",
    "\x1c",
    "\x85",
    "\xa01",
    "1_0",
    "1 2",
    "1\x002",
    "\r",
)
WRITTEN = st.sampled_from([*NUMBERS, *ODDITIES])


@FAST
@given(
    rows=st.lists(st.lists(WRITTEN, min_size=2, max_size=2), min_size=2, max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    missing=st.sampled_from(["error", "drop"]),
)
def test_what_is_read_is_what_is_written(tmp_path, rows, end, missing):
    """Two readers that know nothing of each other, pandas' and Python's, agree on every cell."""
    content = end.join(",".join(row) for row in [["a", "b"], *rows])
    path = tmp_path / "data.csv"
    path.write_bytes(content.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = read_table(path, missing=missing)
        except ValueError:
            return
    cells = [row for row in csv.reader(io.StringIO(content, newline="")) if row][1:]
    for row, values in found.iterrows():
        assert [float(cell) for cell in cells[row]] == list(values)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather"])
@FAST
@given(change=damage())
def test_readers_survive_damaged_tables(tmp_path, ending, change):
    content = io.BytesIO()
    if ending == "parquet":
        table().to_parquet(content)
    elif ending == "feather":
        table().to_feather(content)
    else:
        table().to_csv(content, index=False, compression="gzip" if ending.endswith("gz") else None)
    path = tmp_path / f"data.{ending}"
    path.write_bytes(change(content.getvalue()))
    read_or_refuse(path)


def usable(est: LatentInterventionDAG) -> None:
    X = table()[:3].set_axis(list(est.adjacency_.columns), axis=1)
    assert np.isfinite(est.predict_proba(X)).all()
    assert np.isfinite(est.score_samples(X)).all()
    assert np.isfinite(est.sample(2).to_numpy()).all()
    assert math.isfinite(est.evidence_)


def load_or_refuse(kind, path, saved, change):
    """What a damaged file holds; None if it was refused."""
    damaged = change(saved)
    assume(damaged != saved)
    path.write_bytes(damaged)
    try:
        return kind.load(path)
    except ResultFileError:
        return None


@FAST
@given(change=damage())
def test_damaged_models_are_refused(tmp_path, saved, change):
    est = load_or_refuse(LatentInterventionDAG, tmp_path / "model.safetensors", saved, change)
    if est is not None:
        usable(est)  # damage that the numbers do not notice, such as space in the header


@FAST
@given(change=damage())
def test_damaged_bootstraps_are_refused(tmp_path, saved_bootstrap, change):
    boot = load_or_refuse(BootstrapDAG, tmp_path / "bootstrap.safetensors", saved_bootstrap, change)
    if boot is not None:
        usable(boot.estimator_)


FOREIGN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2**70)
    | st.floats()
    | st.sampled_from(["", "linear", "relu", "os.system", "__reduce__", "nan"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$float", "$tuple", "$items", "$table", "columns", "x"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something can be replaced in nested JSON."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value[:4]):
            found += places(item, (*path, i))
    return found


@settings(FAST, max_examples=150)
@given(data=st.data())
def test_forged_models_are_refused_or_usable(tmp_path, saved, data):
    """Somebody who knows the format replaces a value and signs the file anew."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(saved)
    state, arrays = load_arrays(path, "latentdo")
    if data.draw(st.booleans()):
        place = data.draw(st.sampled_from(places(state)))
        at = state
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = data.draw(FOREIGN)
    else:
        name = data.draw(st.sampled_from(sorted(arrays)))
        changed = np.array(arrays[name])
        if changed.size and data.draw(st.booleans()):
            values = (
                [0, -1, 1, 2**31] if changed.dtype.kind in "iub" else [math.nan, math.inf, -1.0, 0.0, 1e300]
            )
            changed.flat[data.draw(st.integers(0, changed.size - 1))] = np.array(
                data.draw(st.sampled_from(values))
            ).astype(changed.dtype)
        else:
            changed = changed[..., :-1] if data.draw(st.booleans()) else changed[None]
        arrays[name] = changed
    try:
        save_arrays(path, "latentdo", arrays, state)
    except ValueError:  # NaN, which the format does not hold
        return
    try:
        est = LatentInterventionDAG.load(path)
    except ResultFileError:
        return
    usable(est)


def test_a_saved_model_holds_numbers_and_json_only(saved):
    """Nothing in the format names code: the loader has nothing to run."""
    length = int.from_bytes(saved[:8], "little")
    header = json.loads(saved[8 : 8 + length])
    assert set(header.pop("__metadata__")) == {"latentdo"}
    assert {entry["dtype"] for entry in header.values()} <= {"F64", "I64", "I8"}
    assert set(header) == set(from_safetensors(saved))


ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1,
        2,
        3,
        2.5,
        1e308,
        math.nan,
        math.inf,
        "",
        "auto",
        "linear",
        "perfect",
        (),
        [],
        {},
        [("a", "b")],
        [("b", "a")],
        [("a", "a")],
        [["a"], ["b"]],
        ["a", "b"],
        "ab",
        np.zeros((2, 2)),
        np.full((2, 2), np.nan),
        b"x",
        object,
    ]
)
ARGUMENTS = (
    "density",
    "noise",
    "intervention",
    "max_regimes",
    "edge_prior",
    "target_prior",
    "concentration",
    "learning_rate",
    "forbidden",
    "required",
    "tiers",
    "max_parents",
    "observational",
    "transform",
    "missing",
    "n_init",
    "random_state",
    "device",
    "n_jobs",
    "verbose",
)


@settings(FAST, max_examples=150)
@given(options=st.dictionaries(st.sampled_from(ARGUMENTS), ODD, min_size=1, max_size=3))
def test_odd_arguments_are_refused_or_harmless(options):
    est = LatentInterventionDAG(**({"max_regimes": 2, "n_init": 1} | options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            est.fit(table())
        except (ValueError, TypeError):
            return
    usable(est)
    assert np.isfinite(est.edge_probabilities_.to_numpy()).all()


LABELS = st.sampled_from([0, 1, 2, -1, None, math.nan, "drug", "", (1, 2), 2.5, True, np.int8(3), pd.NA])


@settings(FAST, max_examples=100)
@given(
    pool=st.lists(LABELS, min_size=1, max_size=4),
    targets=st.none()
    | st.dictionaries(LABELS, st.sampled_from(["a", "b", ["a", "b"], [], "c", 1, None]), max_size=3)
    | ODD,
    observational=LABELS,
)
def test_odd_labels_and_targets_are_refused_or_harmless(pool, targets, observational):
    X = table()
    regimes = [pool[i % len(pool)] for i in range(len(X))]
    est = LatentInterventionDAG(max_regimes=5, n_init=1, observational=observational)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            est.fit(X, regimes=regimes, targets=targets)
        except (ValueError, TypeError):
            return
    usable(est)
    assert np.isfinite(est.target_probabilities_.to_numpy()).all()
    assert not est.targets_.iloc[0].any()

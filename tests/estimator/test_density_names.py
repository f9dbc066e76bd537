"""What a density is called, and what it is called by in the result."""

import numpy as np
import pandas as pd
import pytest

from latentdo import LatentInterventionDAG


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    return pd.DataFrame({"a": a, "b": np.tanh(2 * a) + rng.laplace(scale=0.3, size=300)})


def test_the_old_name_fits_the_same_and_the_result_says_what_it_is(X, tmp_path):
    old, new = (
        LatentInterventionDAG(density=density, max_regimes=1).fit(X)
        for density in ("flow", "nonlinear-mixed")
    )
    assert old.get_params()["density"] == "flow"
    assert old.result_.density == new.result_.density == "nonlinear-mixed"
    assert old.evidence_ == new.evidence_
    assert any(not one.noise.is_gaussian for one in old.result_.model.reference)
    old.save(tmp_path / "m")
    assert LatentInterventionDAG.load(tmp_path / "m").result_.density == "nonlinear-mixed"


def test_rows_in_parts_need_moments(X):
    with pytest.raises(ValueError, match=r"density='flow'.*density='linear'"):
        LatentInterventionDAG(density="flow").fit_stream([X])

"""A service over time."""

from __future__ import annotations

import numpy as np
import pytest

from latentdo.scm import simulate_service


def test_incidents_are_where_the_truth_says():
    service = simulate_service(n_metrics=6, n_minutes=6000, n_incidents=8, n_causes=4, random_state=1000)
    assert service.X.shape == (6000, 6)
    assert len(service.incidents) == 8
    lengths = []
    for one in service.incidents.itertuples():
        inside = (service.time >= one.start) & (service.time <= one.end)
        assert (service.regimes[inside] == one.regime).all()
        assert service.targets.columns[service.targets.loc[one.regime] == 1].tolist() == [one.cause]
        lengths.append(int(inside.sum()))
    assert 20 <= min(lengths) <= max(lengths) <= 60
    assert (service.regimes > 0).sum() == sum(lengths)
    assert service.incidents["start"].is_monotonic_increasing
    assert (service.incidents["regime"].value_counts() == 2).all()


def test_a_quiet_service_remembers_and_follows_the_hour():
    service = simulate_service(
        n_metrics=3, n_minutes=20_000, n_incidents=0, n_causes=1, random_state=1, noise="gaussian", season=3.0
    )
    x = service.X.to_numpy()
    assert service.incidents.empty
    assert not service.regimes.any()
    hour = np.arange(20_000) % 1440 // 60
    by_hour = np.array([x[hour == h].mean(axis=0) for h in range(24)])
    assert (by_hour.std(axis=0) / x.std(axis=0) > 0.5).all()
    root = int(np.flatnonzero(service.adjacency.to_numpy().sum(axis=0) == 0)[0])
    plain = simulate_service(
        n_metrics=3, n_minutes=20_000, n_incidents=0, n_causes=1, random_state=1, noise="gaussian", season=0.0
    ).X.to_numpy()[:, root]
    assert np.corrcoef(plain[1:], plain[:-1])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_an_incident_moves_its_cause_by_its_size_and_what_follows_from_it():
    calm, broken = (
        simulate_service(n_metrics=5, n_minutes=3000, n_incidents=2, n_causes=1, random_state=3, size=size)
        for size in (0.0, 6.0)
    )
    moved = (broken.X - calm.X).to_numpy()
    np.testing.assert_allclose(moved[broken.regimes == 0], 0.0, atol=1e-9)
    cause = broken.X.columns.get_loc(broken.incidents["cause"].iloc[0])
    assert (moved[broken.regimes > 0, cause] > 0.0).all()
    effects = np.flatnonzero(broken.adjacency.to_numpy()[cause])
    assert (np.abs(moved[np.ix_(broken.regimes > 0, effects)]) > 0.0).all()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"memory": 1.0}, "memory"),
        ({"n_causes": 9}, "n_causes"),
        ({"n_incidents": -1}, "n_incidents"),
        ({"duration": (5, 4)}, "duration"),
        ({"n_minutes": 300}, "do not fit"),
        ({"noise": "pink"}, "noise"),
    ],
)
def test_what_cannot_be_is_refused(given, named):
    with pytest.raises(ValueError, match=named):
        simulate_service(**{"n_metrics": 4, "n_minutes": 2000, "n_causes": 2, "random_state": 0, **given})

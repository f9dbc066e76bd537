"""Warnings reach the fit that they are about, and nobody's filters are changed."""

import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from latentdo import BootstrapDAG, LatentInterventionDAG
from latentdo.data import DataWarning
from latentdo.estimator.messages import at_the_limit
from latentdo.notices import collecting, ignoring_in_sklearn, warn


def table(copied: str) -> pd.DataFrame:
    """Two variables, and a copy of the first under a name of its own."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    return X.assign(**{copied: X["a"]})


def estimator() -> LatentInterventionDAG:
    return LatentInterventionDAG(max_regimes=2, n_init=1, density="linear")


def in_threads(*operations):
    """Run all at once; raise what any of them raised."""
    errors = []

    def run(operation):
        try:
            operation()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(operation,)) for operation in operations]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert errors == []


@pytest.mark.filterwarnings("ignore::latentdo.data.DataWarning")
def test_fits_in_threads_hear_their_own_warnings_only(monkeypatch):
    """Both tables are read before either fit goes on, so each is warned of while the other listens, too."""
    from latentdo.data import Dataset

    names = ("first", "second")
    barrier = threading.Barrier(len(names), timeout=600)
    read = Dataset.from_table.__func__

    def meet_and_read(cls, *arguments, **options):
        barrier.wait()
        found = read(cls, *arguments, **options)
        barrier.wait()
        return found

    monkeypatch.setattr(Dataset, "from_table", classmethod(meet_and_read))
    found = {}
    before = list(warnings.filters)
    in_threads(
        *(lambda name=name: found.update({name: estimator().fit(table(name)).result_}) for name in names)
    )
    assert warnings.filters == before
    for name in names:
        said = " ".join(found[name].warnings)
        assert [other for other in names if other in said] == [name]


def test_overlapping_blocks_leave_the_filters_as_they_were():
    """The first block ends while the second still runs: the case that filters of the whole process do not survive."""
    before = list(warnings.filters)
    entered, left = threading.Event(), threading.Event()

    def first():
        with ignoring_in_sklearn(ConvergenceWarning):
            assert entered.wait(timeout=600)
        left.set()

    def second():
        with ignoring_in_sklearn(ConvergenceWarning):
            entered.set()
            assert left.wait(timeout=600)
            assert len(warnings.filters) == len(before) + 1

    in_threads(first, second)
    assert warnings.filters == before


def test_a_start_that_has_not_converged_is_not_worth_a_warning():
    from sklearn.mixture import GaussianMixture

    rows = np.random.default_rng(0).normal(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ignoring_in_sklearn(ConvergenceWarning):
            GaussianMixture(5, max_iter=1, random_state=0).fit(rows)
        with pytest.raises(ConvergenceWarning):
            GaussianMixture(5, max_iter=1, random_state=0).fit(rows)


def test_a_warning_names_the_line_that_called_fit():
    with pytest.warns(DataWarning, match="copies of each other") as caught:
        estimator().fit(table("copy"))
    assert {warning.filename for warning in caught} == {__file__}


def test_resamples_are_silent_and_the_fit_to_all_rows_speaks():
    with pytest.warns(DataWarning) as caught:
        boot = BootstrapDAG(estimator(), n_resamples=2).fit(table("copy"))
    assert not any("repeat" in str(warning.message) for warning in caught)  # of rows drawn twice
    assert "copy" in boot.estimator_.result_.warnings[-1]
    assert "copy" in str(caught[0].message)


def test_who_listens_within_hears_first():
    with collecting() as outer:
        with collecting() as inner:
            warn("inside", UserWarning)
        warn("outside", UserWarning)
    assert [notice.message for notice in inner] == ["inside"]
    assert [notice.message for notice in outer] == ["outside"]
    with pytest.warns(UserWarning, match="to the user"):
        warn("to the user", UserWarning)


def test_the_package_changes_no_filters_of_the_process():
    """Only processes of our own may: the command line and the job of the app."""
    from pathlib import Path

    import latentdo

    root = Path(latentdo.__file__).parent
    users = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(word in path.read_text("utf-8") for word in ("catch_warnings()", "catch_warnings(record"))
    }
    assert users <= {"cli/console.py", "cli/commands/fit.py", "app/job.py"}


def test_a_single_regime_is_doubted_where_the_search_had_used_all_it_was_allowed():
    single = SimpleNamespace(n_regimes=1, history=({"regimes": 4}, {"regimes": 1}))
    assert "filled all of max_regimes=4 regimes" in at_the_limit(single, 4)
    assert at_the_limit(single, 5) == ""
    assert at_the_limit(SimpleNamespace(n_regimes=1, history=()), 1) == ""

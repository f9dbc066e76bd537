import pytest

from latentdo import simulate
from latentdo.cli import main


@pytest.fixture
def run(capsys):
    """Run the command line; exit code, standard output, standard error."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A table that is fitted in a moment."""
    path = tmp_path_factory.mktemp("small") / "data.csv"
    simulate(n_variables=3, n_samples=300, random_state=1).X.to_csv(path, index=False)
    return path

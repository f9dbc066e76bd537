r"""TunedDAG: priors and rates chosen by the log-likelihood of rows that the fit has not seen.

Every trial fits the estimator on a part of the rows with other values of its parameters, and scores the rest. The
trials are kept by Optuna (``pip install "latentdo[tune]"``): in memory, in an SQLite file from which a later call goes
on, or in any storage that Optuna reaches by a URL, where several processes or machines may share the work.

Held-out likelihood is generous about structure: an edge too many costs it next to nothing. So the best trial does not
simply win. Among the trials within one standard error of it (of the paired differences over blocks of held-out rows),
the one with the fewest edges and targets does.
"""

from latentdo.tuning.meta import TunedDAG
from latentdo.tuning.space import default_space
from latentdo.tuning.task import held_out_log_likelihood

__all__ = ["TunedDAG", "default_space", "held_out_log_likelihood"]

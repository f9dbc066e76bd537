r"""BootstrapDAG: how much of a result survives if the rows had been drawn anew.

An estimator is fitted to all rows, and then again to many resamples of them. What is counted is how often an edge, its
direction, a target or a regime returns. Regimes have no names that all fits share, so those of a resample are matched
with those of the fit to all rows: by label where rows are labelled, otherwise by the assignment that maximises the
overlap of responsibilities over the original rows, targets breaking ties. The overlap of a matched pair is the Jaccard
coefficient of soft sets, :math:`\sum_i \min(r_{ik}, r'_{il}) / \sum_i \max(r_{ik}, r'_{il})`; its mean over the
resamples is the stability of the regime (Hennig, 2007, does the same for hard clusters: below 0.6 do not trust it,
above 0.85 it is stable).

Support is not the probability of an edge. It answers "would this come out again?", the posterior of one fit answers "is
it there, given the assumptions and these rows?". The documentation compares the two.
"""

from latentdo.bootstrap.consensus import consensus_dag
from latentdo.bootstrap.matching import match_regimes
from latentdo.bootstrap.meta import BootstrapDAG
from latentdo.bootstrap.resample import Resample
from latentdo.solvers.dispatch import Progress

__all__ = ["BootstrapDAG", "Progress", "Resample", "consensus_dag", "match_regimes"]

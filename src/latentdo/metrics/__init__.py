"""How far a found answer is from the truth: graphs, targets, regimes and probabilities.

Every function takes the truth first. Inputs may be arrays or pandas frames; two frames are aligned *by name*,
rows and columns, and frames with different names are refused. Nothing that is fitted may import this package.
"""

from latentdo.metrics.edges import (
    EdgeCounts,
    ancestor_aid,
    compare_graphs,
    edge_counts,
    edge_scores,
    essential_graph_distance,
    hamming_distance,
    parent_aid,
    shd,
    sid,
    skeleton_scores,
)
from latentdo.metrics.inputs import Scores
from latentdo.metrics.probabilities import (
    Reliability,
    brier_skill,
    edge_forecasts,
    expected_calibration_error,
    log_score_skill,
    reliability,
)
from latentdo.metrics.regimes import (
    RegimeMatching,
    adjusted_rand_index,
    match_regimes,
    normalized_mutual_information,
    target_scores,
)

__all__ = [
    "EdgeCounts",
    "RegimeMatching",
    "Reliability",
    "Scores",
    "adjusted_rand_index",
    "ancestor_aid",
    "brier_skill",
    "compare_graphs",
    "edge_counts",
    "edge_forecasts",
    "edge_scores",
    "essential_graph_distance",
    "expected_calibration_error",
    "hamming_distance",
    "log_score_skill",
    "match_regimes",
    "normalized_mutual_information",
    "parent_aid",
    "reliability",
    "shd",
    "sid",
    "skeleton_scores",
    "target_scores",
]

"""What the paper prints: the rows of its Table 1, its pairs and its Table 2, for tables that stand beside them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One line of Table 1, in the simulator's words."""

    intervention: str
    mechanism: str
    edges_per_node: int

    @property
    def density(self) -> str:
        """Family of densities that matches the mechanism."""
        return "flow" if self.mechanism == "nonadditive" else self.mechanism

    @property
    def kind(self) -> str:
        """Argument ``intervention`` of the estimator that matches."""
        return "imperfect" if self.intervention == "imperfect" else "perfect"

    def __str__(self) -> str:
        return f"{self.intervention}, {MECHANISMS[self.mechanism]}, e={self.edges_per_node}"


MECHANISMS: Final = {"linear": "linear", "nonlinear": "nonlinear", "nonadditive": "non-Gaussian"}
VARIANTS: Final = ("latent", "unknown", "known", "observational")

TABLE_1: Final = {  # mean and standard deviation over ten graphs, in the order of VARIANTS
    Row("stochastic", "linear", 1): ((5.9, 6.2), (3.4, 3.2), (0.5, 1.3), (10.3, 7.8)),
    Row("stochastic", "nonlinear", 1): ((12.2, 3.9), (10.3, 2.5), (7.0, 3.6), (13.7, 3.8)),
    Row("stochastic", "nonadditive", 1): ((8.7, 6.6), (8.0, 2.7), (6.6, 2.2), (11.3, 5.0)),
    Row("stochastic", "linear", 4): ((27.2, 6.2), (24.1, 5.8), (15.6, 6.0), (39.6, 5.0)),
    Row("stochastic", "nonlinear", 4): ((35.8, 3.8), (30.3, 5.3), (27.7, 4.3), (37.5, 5.2)),
    Row("stochastic", "nonadditive", 4): ((36.1, 4.4), (35.5, 8.1), (31.5, 5.6), (40.2, 6.9)),
    Row("imperfect", "linear", 1): ((5.8, 4.2), (6.2, 3.1), (4.7, 3.6), (10.4, 2.9)),
    Row("imperfect", "nonlinear", 1): ((9.3, 2.4), (8.9, 2.5), (7.8, 3.9), (10.5, 2.8)),
    Row("imperfect", "nonadditive", 1): ((8.8, 3.0), (9.1, 3.5), (7.9, 1.4), (11.5, 5.4)),
    Row("imperfect", "linear", 4): ((35.9, 8.3), (29.7, 5.6), (17.7, 7.9), (39.1, 9.1)),
    Row("imperfect", "nonlinear", 4): ((32.1, 6.0), (32.6, 5.8), (32.8, 5.4), (39.8, 9.3)),
    Row("imperfect", "nonadditive", 4): ((30.4, 12.2), (30.2, 11.2), (25.8, 3.9), (36.7, 9.8)),
}

PAIRS: Final = {  # counts of Hamming distance 0, 1 and 2 over 60 graphs
    "known": (58, 2, 0),
    "unknown": (57, 2, 1),
    "latent": (38, 18, 4),
    "observational": (21, 18, 21),
}


def published(row: Row, variant: str) -> float:
    """Mean Hamming distance of one entry of Table 1."""
    return TABLE_1[row][VARIANTS.index(variant)][0]


def rows(mechanisms: str, interventions: str = "stochastic,imperfect", edges: str = "1,4") -> list[Row]:
    """Lines of Table 1 that flags ask for, each a list with commas."""
    return [
        row
        for row in TABLE_1
        if row.mechanism in mechanisms.split(",")
        and row.intervention in interventions.split(",")
        and str(row.edges_per_node) in edges.split(",")
    ]

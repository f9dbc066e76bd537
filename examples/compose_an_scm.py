"""Compose a causal model by hand, draw it, sample it, and intervene on it.

Run ``python examples/compose_an_scm.py``; with ``--figure sprinkler.png`` it also draws the model.
"""

import argparse
from pathlib import Path

import numpy as np

from latentdo.scm import SCM, Exponential, Function, Gaussian, Imperfect, Laplace, Linear

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--figure", type=Path, help="where to save the picture")
arguments = parser.parse_args()

# A model is a dictionary: every variable has a mechanism, which names its parents, and its own noise.
scm = SCM(
    {
        "rain": Exponential(scale=2.0),
        "sprinkler": (Linear({"rain": -0.8}, intercept=2.0), Gaussian(scale=0.5)),
        "wet": (Linear({"rain": 1.0, "sprinkler": 0.7}), Laplace(scale=0.2)),
    }
)
print(scm)

# Linear models know their moments exactly; samples agree.
rows = scm.sample(100_000, random_state=0)
print("\nmean of wet: exact", round(scm.mean()["wet"], 3), " sampled", round(rows["wet"].mean(), 3))

# Three kinds of intervention. Each gives a new model; the old one stays as it is.
held = scm.do(sprinkler=0.0)  # atomic: held at a value
random = scm.do(sprinkler=Gaussian(1.0, 2.0))  # stochastic: drawn without looking at its parents
broken = scm.do(
    sprinkler=Imperfect(mechanism=Linear({"rain": -0.1}, intercept=2.0))
)  # imperfect: reacts less
for name, model in {"held": held, "random": random, "broken": broken}.items():
    covariance = model.covariance()
    print(
        f"{name:<7} mean of wet {model.mean()['wet']:5.2f}   "
        f"cov(rain, sprinkler) {covariance.loc['rain', 'sprinkler']:5.2f}   still an edge: "
        f"{bool(model.adjacency.loc['rain', 'sprinkler'])}"
    )

# Interventions stack, and with one seed the noise is shared: row by row, what would have happened otherwise.
both = held.do(rain=1.0)
difference = both.sample(1000, random_state=1) - held.sample(1000, random_state=1)
print("\nhad it rained 1.0 instead, wet would differ by", difference["wet"].head(3).round(2).tolist())

# Any function can be a mechanism. Then there are no exact moments, but everything else works.
curved = SCM(
    {
        "dose": Gaussian(1.0, 0.5),
        "effect": (Function(["dose"], lambda dose: np.tanh(2.0 * dose)), Gaussian(scale=0.1)),
    }
)
print(
    "mean effect at dose 2:",
    round(curved.do(dose=2.0).sample(10_000, 0, variables="effect").mean().item(), 2),
)

if arguments.figure:
    random.draw().figure.savefig(arguments.figure, dpi=150)
    print("drawn to", arguments.figure)

"""Simulator: structural causal models to compose by hand, and random benchmarks in one call.

Examples
--------
>>> from latentdo.scm import SCM, Gaussian, Linear
>>> scm = SCM({"dose": Gaussian(), "effect": (Linear({"dose": 1.5}), Gaussian(scale=0.2))})
>>> print(scm.do(dose=2.0).mean()["effect"])
3.0
"""

from latentdo.scm.benchmark import simulate
from latentdo.scm.curves import Multiplicative, Smooth
from latentdo.scm.discrete import Bernoulli, Categorical, Discrete, NegativeBinomial, Poisson
from latentdo.scm.effects import Bent, Effects, Logits, PerLevel, PerLog
from latentdo.scm.interventions import Atomic, Imperfect, Intervention, Stochastic
from latentdo.scm.mechanisms import (
    MLP,
    AdditiveMechanism,
    Function,
    Heteroscedastic,
    Linear,
    Mechanism,
    NonadditiveFunction,
    NonadditiveMLP,
)
from latentdo.scm.model import SCM
from latentdo.scm.noise import (
    ATOM_STD,
    Autocorrelated,
    Bimodal,
    Exponential,
    Gamma,
    Gaussian,
    Laplace,
    Noise,
    PointMass,
    StudentT,
    Uniform,
)
from latentdo.scm.presets import PRESETS, KindSettings, NormalWeights, Preset, SignedUniformWeights
from latentdo.scm.service import Service, simulate_service
from latentdo.scm.simulation import Simulation
from latentdo.scm.snapshots import INCIDENTS, simulate_snapshots
from latentdo.scm.variable import Variable

__all__ = [
    "ATOM_STD",
    "INCIDENTS",
    "MLP",
    "PRESETS",
    "SCM",
    "AdditiveMechanism",
    "Atomic",
    "Autocorrelated",
    "Bent",
    "Bernoulli",
    "Bimodal",
    "Categorical",
    "Discrete",
    "Effects",
    "Exponential",
    "Function",
    "Gamma",
    "Gaussian",
    "Heteroscedastic",
    "Imperfect",
    "Intervention",
    "KindSettings",
    "Laplace",
    "Linear",
    "Logits",
    "Mechanism",
    "Multiplicative",
    "NegativeBinomial",
    "Noise",
    "NonadditiveFunction",
    "NonadditiveMLP",
    "NormalWeights",
    "PerLevel",
    "PerLog",
    "PointMass",
    "Poisson",
    "Preset",
    "Service",
    "SignedUniformWeights",
    "Simulation",
    "Smooth",
    "Stochastic",
    "StudentT",
    "Uniform",
    "Variable",
    "simulate",
    "simulate_service",
    "simulate_snapshots",
]

"""Mechanisms: how one variable comes about, given its parents, in one regime. One file per family."""

from latentdo.model.mechanisms.base import AdditiveNoise, LinearForm, Mechanism
from latentdo.model.mechanisms.family import MechanismFamily, ParametricFamily
from latentdo.model.mechanisms.linear import LinearMechanism
from latentdo.model.mechanisms.network import NetworkMechanism
from latentdo.model.mechanisms.noise import Noise

__all__ = [
    "AdditiveNoise",
    "LinearForm",
    "LinearMechanism",
    "Mechanism",
    "MechanismFamily",
    "NetworkMechanism",
    "Noise",
    "ParametricFamily",
]

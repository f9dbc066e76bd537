r"""What the rows say against a fitted model.

A fit always has an answer. Whether its assumptions hold is another question, and the rows can answer part of it. If the
model is true, what a mechanism leaves over says nothing about anything that comes before it: not about the residuals of
other variables, nor about variables that are no descendants, nor about the row before. Each of these is a statement
that some product :math:`v_i` of row *i* has the mean zero, in every regime and therefore under the posterior of the
regimes too,

.. math:: v_i = \sum_k q_{ik}\, a_{ik} b_{ik}, \qquad t = \sum_i v_i \Big/ \Bigl(\sum_i v_i^2\Bigr)^{1/2},

so that soft assignments need no correction and *t* is about standard normal. Residuals are normal scores of
:math:`p(Z_j < z_{ij} \mid \text{parents}, k)`, whatever the family of the mechanism. Parameters that were fitted to the
same rows make *t* smaller, never larger: the tests err on the side of silence.

Checks of one kind are corrected for their number. Cheap ones run in every fit; those that fit again only in
``falsify()``.
"""

from latentdo.checks.check import Check, failures
from latentdo.checks.dependence import Hint
from latentdo.checks.doubts import DOUBTS, abstention, doubted
from latentdo.checks.run import Findings, check_by_refits, check_fit

__all__ = [
    "DOUBTS",
    "Check",
    "Findings",
    "Hint",
    "abstention",
    "check_by_refits",
    "check_fit",
    "doubted",
    "failures",
]

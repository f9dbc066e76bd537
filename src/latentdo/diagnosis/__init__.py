r"""What data of this size can show, if the fitted model were the truth.

The fitted model is a simulator whose graph and regimes are known. Tables of the same size are drawn from it and fitted
again with the same settings (a parametric bootstrap; Efron and Tibshirani, 1993, chapter 6), and what comes back is
compared with what was put in: edges that are lost, turned round or added, regimes that are merged, rows that change
sides. Beside what the refits reach stands what nobody could beat: the assignment
:math:`\hat k(z) = \arg\max_k \log \pi_k + \log p(z \mid k)` by the very model that drew the rows. Where that ceiling is
low, regimes overlap and no method can tell their rows apart; where refits stay below it, the fit falls short.

All of it is a best case: the family of densities is right by construction, and effects that were found because noise
made them look larger are drawn as large as they look. Edges too weak to enter the fitted graph are not in the simulator
either, so nothing is said about them.

Only the interface of :class:`FittedModel` is used (drawing, and the log joint density), so any family will do.
"""

from latentdo.diagnosis.answer import CONFUSED, FOUND, Diagnosis
from latentdo.diagnosis.diagnose import diagnose_fit

__all__ = ["CONFUSED", "FOUND", "Diagnosis", "diagnose_fit"]

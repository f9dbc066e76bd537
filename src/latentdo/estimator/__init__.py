"""LatentInterventionDAG: one table in; graph, regimes, targets and how sure out.

``latent`` is the estimator, ``questions`` what can be asked of it once fitted, ``arguments`` checks what it was told,
``remarks`` says what a user should hear about a fit.
"""

from latentdo.estimator.latent import LatentInterventionDAG

__all__ = ["LatentInterventionDAG"]

"""The outcome of `simulate`: a data set together with everything that made it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from latentdo.scm.model import SCM
from latentdo.scm.noise import FloatArray
from latentdo.scm.violations import COPY_SUFFIX


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated table and its ground truth.

    Attributes
    ----------
    X : DataFrame [n, d]
        The rows, standardised if that was asked for (see ``mean`` and ``scale``).
    regimes : ndarray of int [n]
        Regime of every row; 0 is observational. A row that did not respond to its intervention is observational.
    targets : DataFrame [n_regimes, d]
        0/1; row 0 is zero.
    adjacency : DataFrame [d, d]
        0/1; row causes column.
    scm : SCM
        The model without interventions, in its own units.
    regime_scms : tuple of SCM
        The model of every regime; the first is ``scm``.
    mean, scale : Series [d]
        The model's units are ``X * scale + mean``, where no violation changed ``X`` afterwards.
    assigned : ndarray of int [n]
        Regime whose intervention every row was meant to undergo: ``regimes``, if all of them responded.
    groups : ndarray of int [n]
        Group of every row; the rows of a group share their regime. Every row is one of its own by default.
    violation : str or None
        What was done to ``X`` afterwards, so that the models are no longer exact.
    exposure : Series [n] or None
        Known exposure of every row, such as its library size, by which all its counts are multiplied.
    """

    X: pd.DataFrame
    regimes: npt.NDArray[np.int64]
    targets: pd.DataFrame
    adjacency: pd.DataFrame
    scm: SCM
    regime_scms: tuple[SCM, ...]
    mean: pd.Series
    scale: pd.Series
    assigned: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    violation: str | None = None
    exposure: pd.Series | None = None

    @property
    def kinds(self) -> dict[str, str]:
        """Column to ``"continuous"``, ``"binary"``, ``"count"`` or ``"categorical"``; copies are as their originals."""
        known = self.scm.kinds
        return {name: known[name.removesuffix(COPY_SUFFIX)] for name in self.X.columns}

    @property
    def responded(self) -> npt.NDArray[np.bool_]:
        """Rows ``[n]`` whose intervention took effect; False for rows without an intervention."""
        return np.asarray((self.assigned > 0) & (self.regimes == self.assigned))

    @property
    def n_regimes(self) -> int:
        """Number of regimes, the observational one included even if it has no rows."""
        return len(self.regime_scms)

    @property
    def regime_weights(self) -> FloatArray:
        """Share of the rows in every regime, ``[n_regimes]``."""
        counts = np.bincount(self.regimes, minlength=self.n_regimes)
        return np.asarray(counts / counts.sum())

    def moments(self, regime: int = 0) -> tuple[pd.Series, pd.DataFrame]:
        """Exact mean and covariance of a regime in the units of ``X``; linear models only."""
        if not 0 <= regime < self.n_regimes:
            raise ValueError(f"regime {regime} does not exist: there are {self.n_regimes}, numbered from 0")
        scm = self.regime_scms[regime]
        mean = (scm.mean() - self.mean) / self.scale
        return mean, scm.covariance().div(self.scale, axis=0).div(self.scale, axis=1)

    def log_density(
        self, X: pd.DataFrame | npt.ArrayLike | None = None, exposure: npt.ArrayLike | None = None
    ) -> FloatArray:
        r"""Exact :math:`\log p(x \mid \text{regime})` under the true mechanisms, in the units of ``X``.

        With :math:`y = s x + m` the model's own units,
        :math:`\log p(x \mid k) = \log p(y \mid k) + \sum_j \log s_j`. For atomic interventions a Gaussian
        with the standard deviation `latentdo.scm.ATOM_STD` (in the model's units) stands for the point mass. Columns
        that are not continuous contribute probabilities, which have no units.

        Parameters
        ----------
        X
            Rows ``[n, d]`` in the units of ``self.X``; by default ``self.X`` itself.
        exposure
            Exposure of these rows, if they have any; that of ``self.X`` by default.

        Returns
        -------
        ndarray [n, n_regimes]

        Raises
        ------
        NotImplementedError
            For mechanisms whose noise is not additive, and for rows that a violation changed.
        """
        if self.violation is not None:
            raise NotImplementedError(
                f"the density of rows with violation={self.violation!r} is not available; "
                "simulate the same table without it"
            )
        exposed = self._exposure(X, exposure)
        values = self.scm.columns_of(self.X if X is None else X)
        values = values * self.scale.to_numpy() + self.mean.to_numpy()
        shared = 1.0 - self.targets.to_numpy(dtype=np.float64).T
        # A regime differs from the reference only in its targets: one pass over the reference terms serves
        # all regimes. Terms of -inf (bounded noise) are summed as counts, since 0 * inf is not a number.
        terms = self.scm.log_density_terms(values, exposure=exposed)
        impossible = np.isneginf(terms)
        density = np.where(impossible, 0.0, terms) @ shared
        density[impossible.astype(np.float64) @ shared > 0] = -np.inf
        for regime, scm in enumerate(self.regime_scms):
            if scm.targets:
                density[:, regime] += scm.log_density_terms(values, scm.targets, exposed).sum(axis=1)
        return np.asarray(density + np.log(self.scale.to_numpy()).sum())

    def bayes_responsibilities(
        self,
        X: pd.DataFrame | npt.ArrayLike | None = None,
        groups: npt.NDArray[np.int64] | None = None,
        exposure: npt.ArrayLike | None = None,
    ) -> FloatArray:
        r"""Posterior probability of every regime under the true model: the best assignment there is.

        :math:`q(k \mid x) \propto w_k\, p(x \mid k)` with ``regime_weights`` as :math:`w`. No method that
        sees only ``X`` can assign rows better on average.

        Parameters
        ----------
        X
            Rows in the units of ``self.X``; by default ``self.X`` itself.
        groups
            Group of every row, if it is known which rows share their regime: then the posterior is that of the group,
            with the share of rows in a regime for its weight.
        exposure
            As for `log_density`.

        Returns
        -------
        ndarray [n, n_regimes]
            Rows sum to one. A row that is impossible under every regime gets the weights themselves.
        """
        weights = self.regime_weights
        with np.errstate(divide="ignore"):  # a regime without rows has weight zero, log-weight -inf
            log_weights = np.log(weights)
        density = self.log_density(X, exposure)
        if groups is not None:
            _, of_row = np.unique(groups, return_inverse=True)
            pooled = np.zeros((of_row.max() + 1, density.shape[1]))
            np.add.at(pooled, of_row, density)
            density = pooled[of_row]
        joint = density + log_weights
        impossible = np.isneginf(joint).all(axis=1)
        joint[impossible] = log_weights
        return np.asarray(special.softmax(joint, axis=1))

    def _exposure(self, X: object, exposure: npt.ArrayLike | None) -> npt.ArrayLike | None:
        if exposure is not None or self.exposure is None:
            return exposure
        if X is not None:
            raise ValueError(
                "counts of this table depend on the exposure of their row: give that of X as exposure="
            )
        return self.exposure.to_numpy()

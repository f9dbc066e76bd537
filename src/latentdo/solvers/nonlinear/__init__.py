"""Structural search with nonlinear mechanisms: small networks, fitted to the noise floor by second-order steps.

The way from a table to a graph (:mod:`.stages`; :mod:`.solve` is the strategy that the driver follows). Regimes come
from several :mod:`.starts`; from minorities (1 and 2), or from a clustering or other mechanisms as labels (1, then 3):

1. :mod:`.rough_scores`: which parents explain *most* rows of a variable, for every parent set, with the intervened
   minority left out by a mixture of two mechanisms. The best graph in these tables gives an order of the variables.
2. :mod:`.regimes`: with all predecessors as inputs every variable's minority is found in all rows; minorities that
   coincide become regimes.
3. :mod:`.order`: the EM of the shared search (:mod:`latentdo.solvers.search.em`, with the :mod:`.learner` of networks)
   fits rows, targets and networks together; regimes merge. What moves between them (:mod:`.marginal_shifts`) says more
   about the order: 1 to 3 are repeated with it.
4. :mod:`.parents`: predecessors that a network can do without are no parents, nor are proxies that a better network
   of the others can do without. Later others may join that were no candidates (:mod:`.candidates`).
5. The moves of the shared search (:mod:`latentdo.solvers.search.regime_moves`), births included, once networks are
   mended (:mod:`.mending`); where noise need not be Gaussian they and the parents are judged with mixed noise. Edges in
   doubt are tried the other way round (:mod:`.orientation`).
6. With mixed noise one regime may stand for several. They are told apart (:mod:`.separated_peaks`), and if they are no
   longer those that the order was found with, 1 to 5 are repeated with them.
"""

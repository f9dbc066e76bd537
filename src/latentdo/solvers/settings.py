"""Every number by which the solvers could be tuned, each with its reason and, where it was measured, the place.

"search 4" is point 4 of the lab book ``experiments/notes/search.md``, "nonlinear 20" point 20 of ``nonlinear.md``, and
so on. A number without such a reference is a guess that has held so far; nobody has tried others. None of them may be
tuned to a single generator. What is not here, because it is no matter of taste: codes and formulas, the floors and
tolerances of the model (with the formulas they guard, in :mod:`latentdo.model`), and the options of gradient fits, of
which include the published ones (:class:`.GradientConfiguration`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# ---------------------------------------------------------------------------------------------------------------
# Rounding: what counts as nothing
# ---------------------------------------------------------------------------------------------------------------

TINY: Final = 1e-300
"""Keeps logarithms and quotients of zero finite."""

EMPTY: Final = 1e-9
"""A regime, or a Gaussian of a noise, with fewer (soft) rows than this has none."""

NEGLIGIBLE: Final = 1e-7
"""Responsibilities below this add nothing that float64 moments would notice, and are skipped."""

FAINT: Final = 1e-3
"""Rows that belong to a mechanism with less than this are left out where many networks are fitted, and of sums that are
subtracted from those of all rows; also the weight of all rows where none follows the mechanism, so that something can
be fitted."""

UNDECIDED: Final = 1e-12
"""Probabilities are at least so far from 0 (and 1) when their odds are taken; rows with less are of no regime."""

RAREST: Final = 1e-6
"""Shares of rows are at least so far from 0 and 1 when their odds are taken."""

WORTHWHILE: Final = 1e-6
"""Smallest gain in nats for which a graph changes: well above the rounding of sums of scores (search, "A climb that
never ended")."""

SCORE_ROUNDING: Final = 1e-9
"""The same within one variable, whose score is a sum of a few terms."""

ORDER_ROUNDING: Final = 1e-12
"""Orders whose scores differ by less are equal, and the later one is taken: it may lead elsewhere."""

IMPOSSIBLE: Final = 1e6
"""How far below every possible parent set an impossible one counts. 1e15 made rounding look like gains, and a climb
that never ended (search)."""

# ---------------------------------------------------------------------------------------------------------------
# Size: what is worth its time
# ---------------------------------------------------------------------------------------------------------------

MAX_VARIABLES: Final = 2000
"""Beyond this the moments of 16 regimes fill gigabytes, and one graph search takes hours."""

BLOCK: Final = 65_536
"""Rows assigned at once: memory beyond the responsibilities does not grow with n."""

LINEAR_SEARCH_ROWS: Final = 20_000
"""Most rows to search structure on with linear mechanisms; more hardly change it."""

ROWS_PER_REGIME: Final = 300
"""Rows that are searched for each regime that is allowed, at least."""

NETWORK_SEARCH_ROWS: Final = 12_000
"""Most rows to search structure on with networks; on more they take longer and find the same."""

SEARCH_STARTS_A_NETWORK: Final = 4
"""One start of a network by gradient takes as long as many starts of the search: so many of ``n_init`` count as one."""

# ---------------------------------------------------------------------------------------------------------------
# Regimes and mechanisms: what can be fitted at all
# ---------------------------------------------------------------------------------------------------------------

STRETCH: Final = 10
"""Neighbours in time that go together where regimes are proposed: enough to show a shift of one standard deviation, few
beside the visits that a series can show."""

WHITE_LAGS: Final = 20
"""Rows back to which it is tested whether the past explains all of what neighbours have in common: a few times the rows
that it may look at (together 7)."""

WHITE_LEVEL: Final = 1e-3
"""Of that test, for all variables together. A wrong rejection costs a second search, in which evidence decides."""

DEPENDENT: Final = 0.05
"""Nats per row that the past has to explain within regimes for a second search: with regimes that overlap, wrong
guesses leave some, and evidence would decide against it (together 7)."""

RESETTLED: Final = 0.1
"""Root mean square by which rows have to move, in units of their noise, when the background is fitted again beside the
regimes that were found: smaller changes are not worth another search."""

MOST_STRETCHES: Final = 15
"""Stretches of time with a shifted level that are told apart where a rough graph is searched."""

CONFOUNDED: Final = 0.9
"""Share of a regime's rows in one batch from which it is said that the two cannot be told apart."""

MIN_ROWS: Final = 10.0
"""A free regime with fewer (soft) rows is dropped."""

ROWS_PER_PARAMETER: Final = 2.0
"""A mechanism is fitted only to more rows than so many for each of its parameters."""

OWN_ROWS_PER_PARAMETER: Final = 3.0
"""The same for an intervened mechanism that uses its parents, and for parents that come late, where networks are
searched."""

OWN_ROWS_PER_GAUSSIAN: Final = 50.0
"""Rows for each Gaussian of an intervened mechanism's noise below which it has one."""

# ---------------------------------------------------------------------------------------------------------------
# Structural EM
# ---------------------------------------------------------------------------------------------------------------

EM_STEPS: Final = 10
"""Steps of EM on a fixed graph, unless a move asks for fewer or more."""

EM_TOLERANCE: Final = 0.1
"""A step of EM that gains fewer nats is the last: differences that decide are of half a nat and more."""

RELEARN_ROUNDS: Final = 10
"""Turns of graph search and EM: a bound, since they end when the evidence no longer rises."""

RELEARN_STEPS: Final = 5
"""Steps of EM between two graph searches: the next graph changes them anyway."""

SETTLE_STEPS: Final = 50
"""Steps of EM once the graph stands."""

SHARING_ROUNDS: Final = 6
"""Rounds in which regimes join or leave a reference mechanism before single flips finish the choice. With them at
least 95 % of 240 random instances reach the brute-force optimum (search 1)."""

ALL_ROWS_STEPS: Final = 5
"""Steps of EM when a state found on some rows is carried to all of them."""

ALL_ROWS_ROUNDS: Final = 2
"""Turns of graph search and EM then: the sample's graph is nearly right."""

ALL_ROWS_TOLERANCE: Final = 1.0
"""Nats below which such a step, or a pass over rows that are read in parts, is the last."""

MAX_PASSES: Final = 20
"""Passes of EM over rows that are read in parts; a large sample leaves little to do, and three to six are usual."""

GRAPH_PASSES: Final = 2
"""Passes after which the graph is searched again: all rows may show edges that the sample left open."""

# ---------------------------------------------------------------------------------------------------------------
# Starts of the linear search
# ---------------------------------------------------------------------------------------------------------------

START_NAMES: Final = ("residual", "mixture", "residual", "k-means")
"""Kinds of starts in turn. Where regimes overlap only the residual start works (search 4); elsewhere a mixture with
births and merges reached what EM from the truth reaches (search 3)."""

AGREEMENT: Final = 0.5
"""Two starts that end within this many nats of each other have found the same optimum (gradient 6.4)."""

DOUBT_AFTER: Final = 2
"""Starts after which one regime is tried where regimes overlap: if it wins, more starts would only fit noise better."""

ANNEALING: Final = (-40.0, -20.0, -10.0)
"""Target priors of the first rounds from a clustering: wrong clusters must not buy targets before they are mended."""

ANNEALING_ROUNDS: Final = 3
"""Turns of graph search and EM with each of these priors."""

RESIDUAL_ROWS: Final = 2000
"""Rows on which parent sets are scored by minority mixtures; the minorities themselves are then found in all rows.
With 6000 nothing was gained (search 6)."""

RESIDUAL_CANDIDATES: Final = 7
"""Candidate parents in that scoring; with nine, and fresh starts for all sets, it took ten times as long (search 4)."""

WIDE: Final = 50
"""With more variables than this, scoring is most of the work of a start, and :data:`WIDE_CANDIDATES` do as well."""

WIDE_CANDIDATES: Final = 5
"""Candidate parents in that scoring, in wide tables."""

SMALL_LINEAR_SET: Final = 1
"""Parent sets up to this size try every first guess of the minority; larger ones go on from subsets (search 4)."""

MINORITY_STEPS: Final = 20
"""Steps of EM for one parent set's minority."""

MINORITY_TOLERANCE: Final = 0.1
"""Nats below which such a step, or one of a split's, is the last."""

FINAL_MINORITY_STEPS: Final = 200
"""Steps of EM for the minorities in all rows, once the parents are chosen."""

FINAL_MINORITY_TOLERANCE: Final = 0.01
"""Nats below which such a step is the last."""

MINORITY_TAIL: Final = 0.1
"""First guesses of who the minority is: this share of the rows, at either end of the values or in their middle."""

MINORITY_CERTAINTY: Final = 0.9
"""Probability with which a guess says so: EM must be able to leave it."""

CHANCE_FACTOR: Final = 5.0
"""Minorities that coincide make a regime of their own if they do so this many times more often than by chance, and"""

CHANCE_MARGIN: Final = 10.0
"""in so many rows more."""

RESIDUAL_STEPS: Final = 30
"""Steps of EM with the targets that the residual start proposes held fixed (longer: no gain, search 6)."""

RESIDUAL_LABELLED_STEPS: Final = 20
"""Steps of EM from there where labels say something of the targets, which are then free."""

ROWS_PER_CLUSTER: Final = 20
"""A clustering has no more clusters than there are such groups of rows."""

ROWS_PER_COVARIANCE: Final = 5
"""Rows for each variable below which clusters have diagonal covariances."""

CLUSTER_RIDGE: Final = 1e-6
"""Added to the variances of clusters (that of scikit-learn)."""

CLAIM: Final = 0.5
"""Labelled (soft) rows from which on a cluster belongs to a label."""

LABELLED_ROWS: Final = 5
"""Labelled rows for each variable and label from which on a model of them assigns the others."""

LABELLED_ROUNDS: Final = 2
"""Turns of graph search and EM for that model."""

# ---------------------------------------------------------------------------------------------------------------
# Births and merges of regimes, linear mechanisms
# ---------------------------------------------------------------------------------------------------------------

OVERLAP: Final = 0.9
"""Regimes overlap if rows belong to their likeliest regime with less than this probability on average."""

PROBE_ROWS: Final = 1500
"""Rows of a regime on which its possible splits are compared."""

MEMBERSHIP: Final = 0.02
"""Probability from which on a row takes part in the splits of a regime."""

BIRTH_WORTH: Final = 1.5
"""Times log(n) that a split must gain to be tried: what a weight, a mean and a variance cost, half of log(n) each."""

SPLIT_MISFITS: Final = (0.1, 0.35, 0.7)
"""Who might leave a regime: these shares of its rows, those that the mechanism explains worst."""

SPLIT_TAIL: Final = 0.15
"""And this share, at either end of the values."""

SPLIT_GLANCE: Final = 4
"""Steps of EM by which such guesses are compared."""

SPLIT_STEPS: Final = 25
"""Steps of EM for the best of them."""

SPLIT_EXTENSION_STEPS: Final = 10
"""Steps of EM that carry a split from the probed rows to all of a regime."""

BIRTH_GAIN: Final = 1.0
"""Nats by which a birth must raise the evidence."""

BIRTH_ROUNDS: Final = 25
"""Rounds of births, merges and graph search."""

MAX_ROUNDS_AT_LIMIT: Final = 8
"""Rounds of births with as many regimes as are allowed: evidence may rise with every one (search, "Cytometry")."""

BIRTH_TRIES: Final = 8
"""Births that are tried in one round."""

BIRTH_TRIES_AT_LIMIT: Final = 3
"""The same where every birth costs a merge."""

HELD_STEPS: Final = 3
"""Steps of EM in which a regime has to do without a target: where that was right, the first one or two showed it."""

TARGET_TRIES: Final = 12
"""Targets, one after another, that the evidence does not do without, after which no more are tried; those of the
largest regimes come first, where it mattered."""

GRAPH_GAIN: Final = 0.5
"""Nats by which a new graph must raise the evidence for another round of births."""

MERGE_TRIES: Final = 3
"""Merges, the most promising first, that are tried before a state counts as having none.

Of pairs by the variational bound; of all regimes that one variable tells apart by how many regimes hit it."""

DROP_TRIES: Final = 4
"""Regimes, those that are missed least with all mechanisms as they are, that are tried to be done without."""

SEVERAL_MERGES_STEPS: Final = 5
"""Steps of EM after several merges at once: more merges follow."""

MAX_TAILS: Final = 30
"""Variables whose tails are tried in one round."""

TAIL: Final = 0.12
"""Share of the rows at either end of a variable from which a regime may grow (search 5)."""

TAIL_SHARE: Final = 0.8
"""Part of each such row that the new regime gets."""

TAIL_STEPS: Final = 12
"""Steps of EM in which it keeps its target before it has to pay (search 5)."""

TAIL_LOSS: Final = 3.0
"""Times log(n) that the evidence may have fallen by then."""

FREE_TAIL_STEPS: Final = 30
"""Steps of EM after that, where regimes that overlap move slowly,"""

FREE_TAIL_TOLERANCE: Final = 0.02
"""and the nats below which one of these steps is the last."""

# ---------------------------------------------------------------------------------------------------------------
# Graph search
# ---------------------------------------------------------------------------------------------------------------

EXACT_LIMIT: Final = 12
"""Up to this many variables dynamic programming over subsets takes well under a second."""

MAX_CANDIDATES: Final = 10
"""Candidate parents of a variable in larger problems: 2^10 parent sets each. Thirteen took eight times as long (search,
"Dense graphs")."""

SPARE: Final = 4
"""Places among the candidates that current parents leave to others."""

SHORT_LIST: Final = 24
"""Parents that stay in the race after the first round of a greedy selection."""

PARTIAL_RIDGE: Final = 1e-9
"""Share of the mean variance that is added before partial correlations are taken."""

MAX_ORDER_SWEEPS: Final = 200
"""Sweeps over all variables in one climb; a few are enough unless rounding plays tricks (search)."""

ORDER_SHAKES: Final = 50
"""Perturbed restarts of an order search."""

LONGEST_SHAKE: Final = 3
"""Blocks moved in one shake, and variables in a block, at most: enough to leave a local optimum without losing the
rest of the order."""

WALK_LIMIT: Final = 50
"""Variables up to which walks through the order are worth their time: at 60 with four edges each they took more than
six minutes (search, "Dense graphs")."""

WALK_REACH: Final = 20
"""Places that a variable walks either way; longer ways are left to the search in tables."""

MAX_WALK_SWEEPS: Final = 20
"""Sweeps of walks over all variables; a few are enough."""

# ---------------------------------------------------------------------------------------------------------------
# Probabilities of edges
# ---------------------------------------------------------------------------------------------------------------

LAYER_LIMIT: Final = 11
"""Up to this many variables the sum over DAGs is exact; it takes 4^d steps."""

NEGLIGIBLE_LOG: Final = -40.0
"""Log-probability below which a layering cannot change any marginal in float64."""

SAMPLED_DAGS: Final = 500
"""DAGs sampled for what has no exact sum: of independent ones the standard error is at most 2.2 %."""

SAMPLE_THINNING: Final = 20
"""Steps for each variable between two sampled orders."""

BURN_IN: Final = 5
"""One in so many samples is drawn, and forgotten, before the first; sampling starts at a good DAG."""

ORDER_STEP: Final = 4
"""Places that a variable moves at most in one step of the sampler."""

# ---------------------------------------------------------------------------------------------------------------
# One regime: what hidden interventions have to beat
# ---------------------------------------------------------------------------------------------------------------

SCEPTICISM: Final = 2.0
"""Hidden interventions must beat one regime by this many times log(n) nats, the error that either evidence may have
(search, "False alarms")."""

MAX_NOISE_GAUSSIANS: Final = 3
"""Gaussians in the flexible noise of one regime: two or three left false alarms, which sinh-arcsinh noise caught
(search, "False alarms")."""

MAX_NOISE_ROWS: Final = 2000
"""The shape of that noise is learnt from at most this many rows, and its gain scaled to all."""

DETERMINED: Final = 10.0
"""A variable whose noise is below this many times the floor of variances has only rounding for noise."""

SINH_RANGE: Final = 50.0
"""Arguments of the sinh-arcsinh density are cut off here, long before float64 overflows."""

SINH_BOUNDS: Final = ((-5.0, 5.0), (-5.0, 5.0), (-2.0, 2.0), (-5.0, 5.0))
"""Bounds of its location, log-scale, log-tail and skewness, for standardised residuals."""

# ---------------------------------------------------------------------------------------------------------------
# What limits and zeros hide
# ---------------------------------------------------------------------------------------------------------------

FILLING_SWEEPS: Final = 15
"""Turns of draws and parameters. The share of hidden cells decides how many are needed; for a fifth, five would do."""

FILLING_STEPS: Final = 2
"""Steps of EM in each turn of a mixture, from where the last one ended."""

FILLING_ROUNDS: Final = 2
"""How often the number of Gaussians is chosen: the first time by values that were drawn from a single one."""

FILLING_MIXTURE: Final = 8
"""Gaussians at most: tables with four regimes take three to five (noise, atoms)."""

FILLING_STARTS: Final = 2
"""Starts of each mixture that is compared."""

FILLING_ROWS: Final = 5000
"""Most rows that mixtures are fitted to; values are drawn in all."""

WHOLE_ROWS: Final = 20
"""Rows per variable without a missing cell from which on a fit to them comes first. It is the better beginning: draws
that know nothing of regimes blur them (missing.md, 1)."""

MISSING_ROUNDS: Final = 2
"""How often missing cells are drawn from what was fitted: then all rows are searched afresh, and later the fit goes on
(missing.md, 1 and 2)."""

FILLING_RIDGE: Final = 1e-4
"""Added to variances of standardised columns: copies of columns would leave no noise."""

# ---------------------------------------------------------------------------------------------------------------
# Any family of mechanisms, fitted to weighted rows
# ---------------------------------------------------------------------------------------------------------------

FAMILY_SEARCH_ROWS: Final = 5000
"""Most rows to search structure on: the time of every fit grows with them."""

FAMILY_RESTARTS: Final = 2
"""How often regimes are born anew on the graph found so far, as long as that is better (noise, "Born again")."""

FAMILY_ROUNDS_AT_LIMIT: Final = 0
"""Rounds of births with as many regimes as are allowed: each of them costs merges, and took most of the time on the
light tunnel."""

FAMILY_CANDIDATES: Final = 6
"""Candidate parents of a variable: 2^6 parent sets, each of which costs a fit per regime."""

FAMILY_ROUNDS: Final = 3
"""How often regimes may join or leave a reference mechanism, each time with a fit."""

FAMILY_TABLES: Final = 4
"""How often tables of parent sets are made anew around the best graph of the last ones, where columns are discrete:
what sets without a fit are said to explain is rougher there (kinds, "Rough tables")."""

FAMILY_GAIN: Final = 0.1
"""Smallest gain in nats for which an edge changes: what the fits of either side may miss."""

FAMILY_HOPELESS: Final = 7.0
"""Nats by which a parent set may be behind in scores without a fit and still be fitted: a set that stays seven behind
has a probability below 1e-3."""

FAMILY_DOUBT: Final = 2.0
"""The same for sets with one more parent while a graph is climbed: what needless parents gain by a fit of their own."""

SHARING_FUNCTIONS: Final = 4
"""Functions of every parent by which it is guessed who shares a mechanism: the bulk of a curve."""

FAMILY_GLANCE: Final = 2
"""Steps of EM by which guesses of who leaves a regime are compared."""

FAMILY_DISCRETE_GLANCE: Final = 8
"""The same for discrete variables, whose two mechanisms overlap (kinds, "Births")."""

FAMILY_SPLIT_STEPS: Final = 6
"""Steps for the best of them."""

FAMILY_EXCEPTION_STEPS: Final = 10
"""The same where an exception may be the rule: both overlap more."""

FAMILY_FAINT: Final = 1e-4
"""Rows of less weight are left out of a fit."""

FAMILY_STILL: Final = 1.0
"""Rows that may have come or gone, in all, before a mechanism is fitted again: a fit is a maximum, so that what is lost
goes with their square."""

SPLIT_STILL: Final = 0.005
"""Share of the rows that may have come or gone before those who follow a mechanism are split anew: fewer than the
smallest regime that pays."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: fits
# ---------------------------------------------------------------------------------------------------------------

UNITS: Final = 8
"""Rectified units of a network; mechanisms of the paper's benchmark have 5, and 12 were not better (nonlinear 4)."""

UNIT_STEPS: Final = 15
"""Steps of a fit after a unit was dropped,"""

UNIT_TRIES: Final = 2
"""and units, those that are missed least, that are tried before all are needed."""

FIT_STARTS: Final = 3
"""Random starts of a fit: residuals are then those of the true noise for up to four parents (nonlinear 4, 34)."""

START_ROWS: Final = 1500
"""Rows on which starts are compared (nonlinear 4)."""

START_STEPS: Final = 25
"""Steps of each start on them."""

HEAVY: Final = 0.3
"""Share of the largest weight from which on a row may be among them."""

FIT_STEPS: Final = 30
"""Steps on all rows from the best start; 200 leave the same residuals (nonlinear 34)."""

FIT_TOLERANCE: Final = 1e-4
"""Share of the sum of squares below which a step gains nothing."""

SLOW_STEPS: Final = 2
"""Such steps in a row that end a fit."""

DAMPING: Final = 1e-2
"""Damping of the first step."""

DAMPING_FACTOR: Final = 5.0
"""By which it grows after a step that failed, and falls after one that did not."""

SINGULAR_FACTOR: Final = 10.0
"""By which it grows where the equations could not be solved."""

LEAST_DAMPING: Final = 1e-10
"""It never falls below this."""

DAMPING_TRIES: Final = 6
"""Dampings tried for one step before the fit ends."""

DAMPING_FLOOR: Final = 1e-9
"""Scale of a parameter that no row moves, for each row: dead units are damped, too."""

RIDGE: Final = 1e-12
"""Keeps the normal equations definite where units are dead or inputs collinear, for each row."""

START_RIDGE: Final = 1e-6
"""The same for the last layer of a random start, whose directions may be nearly alike."""

OWN_RIDGE: Final = 1e-9
"""The same for intervened mechanisms."""

MECHANISM_STEPS: Final = 3
"""Steps of a fit that goes on from the last one, as in every round of EM."""

MECHANISM_ROUNDS: Final = 2
"""Turns of network and mixed noise in such a fit."""

SEARCH_NOISE: Final = 1
"""Gaussians in the noise while structure is searched, whatever the density: mixed noise explains bad fits too well
(nonlinear 10, 24)."""

MIXED_NOISE: Final = 3
"""Gaussians in mixed noise, which hidden regimes have to beat, too: enough for what is neither Gaussian nor of one
width."""

NOISE_VARIANCES: Final = (0.05, 2.0)
"""Variances with which mixed noise starts, from the first to the second, as shares of the whole."""

FRESH_NOISE_STEPS: Final = 15
"""Steps of EM for mixed noise from there,"""

WARM_NOISE_STEPS: Final = 6
"""and from noise that was fitted before."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: the rough order
# ---------------------------------------------------------------------------------------------------------------

ROUGH_ROWS: Final = 1500
"""Rows on which parent sets are scored (nonlinear 1)."""

FEATURES: Final = 48
"""Random features of a parent set, besides its variables themselves (nonlinear 1)."""

MAX_PARENT_SETS: Final = 6000
"""Parent sets scored in all: what fits decides how many candidate parents a variable has,"""

FEWEST_CANDIDATES: Final = 3
"""but at least these."""

PARAMETERS_AN_EDGE: Final = 6.0
"""What a parent costs, in parameters: a few of the random features are there because of it. With 3 log n for an edge no
true edge was violated in eight tables (nonlinear 2)."""

SMALL_SET: Final = 2
"""Parent sets up to this size try every first guess of the minority; larger ones continue from their subsets."""

MOVED: Final = 0.05
"""Minorities that differ less than this, in the mean over rows, are the same."""

ROUGH_STEPS: Final = 10
"""Steps of EM from a guess,"""

HANDED_STEPS: Final = 5
"""and from the minority of a smaller or larger parent set (nonlinear 2)."""

ROUGH_TOLERANCE: Final = 2.0
"""Nats below which such a step is the last: scores of random features are not exact to more."""

ROUGH_RIDGE: Final = 1e-7
"""Added to the diagonal of products of features found by subtraction, whose rounding could make them singular."""

FEWEST_MINORITY: Final = 8.0
"""A minority with fewer rows is none."""

LARGEST_LABEL: Final = 0.9
"""Share of the rows from which on a label is no guess of a minority."""

MINORITY_DOUBT: Final = 0.02
"""Probability that a guess leaves to rows that it does not name."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: regimes
# ---------------------------------------------------------------------------------------------------------------

MINORITY_ROUNDS: Final = 12
"""Rounds of EM for one variable's minority under a network."""

FIRST_STEPS: Final = 12
"""Steps of EM with the first regimes."""

NETWORK_EM_TOLERANCE: Final = 1.0
"""Nats below which a step of EM with networks is the last."""

TRIAL_STEPS: Final = 4
"""Steps of EM with networks after a change of their weights, of targets or of an edge."""

MOVE_GAIN: Final = 1.0
"""Nats that a network fitted again must gain to be taken."""

MAX_TRIES: Final = 6
"""Moves of one kind that are tried before giving up on the kind: each costs a few rounds of EM."""

REFIT_STARTS: Final = 4
"""Random starts of networks whose residuals are not of one width,"""

REFIT_STEPS: Final = 120
"""the steps of their fits,"""

REFIT_TOLERANCE: Final = 1e-5
"""and the share of the sum of squares below which such a step gains nothing (nonlinear 7)."""

TARGET_GAIN: Final = 0.5
"""Nats that a change of targets must gain."""

SIMPLIFY_STARTS: Final = 2
"""Random starts of a network that tries to do without a target, besides its own weights,"""

SIMPLIFY_STEPS: Final = 60
"""the steps of its fit (nonlinear 8),"""

BIRTH_PER_ROW: Final = 0.01
"""Nats a row that a birth must gain: networks are never perfect, and new regimes would mend them bit by bit
(nonlinear 19)."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: splits of regimes
# ---------------------------------------------------------------------------------------------------------------

ENOUGH: Final = 500
"""Rows of other regimes that show a mechanism's noise well (nonlinear 35)."""

LEAVING_ROWS_PER_PARENT: Final = 5
"""Rows for each parameter of a line below which those that leave cannot show an intervention."""

STILL_EXPLAINED: Final = 0.5
"""Rows that leave, and of whose spread a line explains more than this, show a bad network (nonlinear 7),"""

NOISIER: Final = 10.0
"""unless interventions may be imperfect and these rows have this many times the usual noise."""

COMMON: Final = 0.5
"""Rows that leave a mechanism in other regimes this many times as often as here are no regime (nonlinear 26)."""

PEAKS: Final = 6
"""Gaussians that are fitted to a target's values at most before those that overlap are joined (nonlinear 38)."""

CLEAR: Final = 0.97
"""Mean certainty with which every row of a regime must belong to one of its parts."""

SMALLEST_PART: Final = 0.05
"""Share of a regime's rows that a part must have."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: what moves between regimes (nonlinear 16)
# ---------------------------------------------------------------------------------------------------------------

CRITICAL: Final = 1.63
"""Distance of two empirical distribution functions that one pair of samples in a hundred exceeds, in units of
``sqrt(1/n + 1/m)`` (Kolmogorov and Smirnov)."""

SMALL_SHIFT: Final = 0.2
"""Two distributions count as equal only if a larger distance than this would have shown."""

LARGE_SHIFT: Final = 0.3
"""Two distributions that are farther apart than this differ clearly: what depends on the variable should move too."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: parents and directions
# ---------------------------------------------------------------------------------------------------------------

ROWS_PER_UNIT: Final = 3
"""Rows for each unit below which nothing can be said of a variable's parents."""

FULL_STEPS: Final = 40
"""Steps of the fit with all predecessors, before any is dropped, and of a fresh one beside it;"""

FULL_NOISE_STEPS: Final = 10
"""steps of the latter with the noise of the former."""

ELIMINATION_STEPS: Final = 15
"""Steps of a fit with one input fewer, or more."""

LIFT_GAIN: Final = 0.5
"""Nats by which a smaller network must be luckier for the larger one to go on from it (nonlinear 6),"""

LIFTS_PER_INPUT: Final = 3
"""and how often that may happen, for each input."""

WIDTHS: Final = (UNITS, 12)
"""Units that a smaller parent set may have before a larger one is believed (nonlinear 36)."""

WORTH: Final = 2.0
"""Times the mean square that all parents leave: fewer parents that leave more cannot be right (nonlinear 36)."""

GLANCE_ROWS: Final = 1500
"""Rows on which the next parent is chosen,"""

GLANCE_STARTS: Final = 3
"""random starts of each fit there,"""

GLANCE_STEPS: Final = 20
"""and their steps."""

FRESH_STARTS: Final = 12
"""Starts of a fit from scratch (nonlinear 36),"""

FRESH_STEPS: Final = 60
"""steps on all rows"""

FINALISTS: Final = 3
"""from so many of them."""

SCREENED_ROWS: Final = 3000
"""Rows on which parents are looked for that were not among the candidates,"""

SCREEN_FEATURES: Final = 12
"""and random features of each, alone and with the parents there are: enough to show that it matters."""

TURN_ROWS: Final = 3000
"""Rows on which edges that may be turned are compared."""

UNTURNED: Final = 20.0
"""Nats lost by turning an edge from which on its direction counts as certain: e^-20 is nothing to anybody."""

TURNS_PER_VARIABLE: Final = 0.5
"""Edges that are tried the other way round: six of ten variables were enough (nonlinear 9)."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: stages
# ---------------------------------------------------------------------------------------------------------------

NETWORK_START_NAMES: Final = ("minorities", "mixture", "mixture")
"""Kinds of starts in turn, the slower one first. With one to three targets per regime a mixture led to ARI 0.997 where
minorities had 0.55 (nonlinear 48)."""

START_GAIN: Final = 0.1
"""Nats per row by which a later start must be better while all predecessors are inputs. A start with a regime too few
had 0.04 more; where minorities failed, a mixture had 0.25 and 2 more (nonlinear 49, 54)."""

WIDEST: Final = 40
"""Variables above which the order is that of the curves found before: rough scores of all pairs would take minutes."""

LOOKS: Final = 2
"""Further looks for the order, each with the regimes that the last one led to (nonlinear 18, 32)."""

LOOK_GAIN: Final = 1.0
"""Nats by which another order must be better where it needs no more coincidences."""

MISFIT: Final = 0.25
"""Nats per row by which evidence may be wrong because noise is not what the networks assume (nonlinear 18, 28),"""

MIXED_MISFIT: Final = 2.0
"""times this where noise may be mixed (nonlinear 32)."""

LUCK: Final = 0.1
"""Nats per row that networks with mixed noise may gain by an edge the wrong way round, or a target too many
(nonlinear 39)."""

SETTLED: Final = 0.97
"""Agreement (adjusted Rand index) of the regimes with those that the order was found with, at which it stands
(nonlinear 38)."""

REMAINING: Final[Mapping[str, float]] = {
    "regimes": 1.7, "moves": 1.5, "parents": 0.8, "noise": 0.7, "births": 0.4, "final": 0.0,
}  # fmt: skip
"""Time left after a step as a share of the time until regimes were first found; from traces of ten variables."""

# ---------------------------------------------------------------------------------------------------------------
# Lines or networks (nonlinear 20, 43)
# ---------------------------------------------------------------------------------------------------------------

CURVE_ROWS: Final = 500
"""Rows, of the table and of a variable, below which curves are not looked for."""

SCREEN_ROWS: Final = 1500
"""Rows on which a variable is screened,"""

SCREEN_STARTS: Final = 2
"""and random starts of the network there."""

BENT: Final = 0.7
"""Nats a row that a curve of one variable gains over a straight line where networks are searched at once. On linear
tables with hidden regimes up to 0.6 were seen, on nonlinear ones 0.9 and more (nonlinear 20). It saves the time of
curves, and decides nothing: evidence does."""

PRODUCT_UNITS: Final = 2
"""Units of a network that could draw the product of two variables, roughly: what a screen for products has to pay."""

# ---------------------------------------------------------------------------------------------------------------
# Gradient fits
# ---------------------------------------------------------------------------------------------------------------

PAPER_ROWS: Final = 10
"""Rows for each regime and variable below which the published algorithm is known to return noise (gradient 6.1)."""

MAX_BACK_OFFS: Final = 8
"""Times that a run may halve its learning rate after its loss broke down; then it is a 256th."""

BROKEN_LOSS: Final = 100.0
"""Nats a row by which the bound must fall to count as broken down, or"""

BROKEN_SHARE: Final = 10.0
"""times its best value, whichever is more."""

IMPROVEMENT: Final = 1e-4
"""Share of the best bound per row by which a chunk of steps must beat it."""

SETTLING: Final = 0.01
"""Share of its learning rate that a run with a fixed graph ends with."""

ANNEALED_TEMPERATURE: Final = 0.2
"""Temperature of the targets for each nat of their extra cost."""

LARGEST_TARGET_LOGIT: Final = 10.0
"""Logits of targets never leave this range: probabilities must be able to come back."""

PROPOSED_TARGETS: Final = 1.0
"""Logits by which targets of a proposal start surer than its edges (gradient 3)."""

WEIGHT_STEPS: Final = 20
"""Steps of EM for the regimes' weights alone."""

PAIR_ROWS: Final = 2000
"""Rows evaluated at once under all regimes."""

CLUSTER_ROWS: Final = 5
"""A clustering has no more clusters than there are such groups of rows."""

CLUSTER_STARTS: Final = 10
"""Starts of the mixture of Gaussians: ARI 0.95 to 0.97 where one start by k-means had 0.84 (gradient 2)."""

CLUSTER_STEPS: Final = 60
"""Steps of its EM."""

COMPARED_ROWS: Final = 500
"""Rows of a cluster that are compared with those of others to find the reference,"""

FEWEST_COMPARED: Final = 5
"""at least so many of them,"""

DIFFERENT: Final = 1e-4
"""with a p-value below this where they differ."""

SPECTRAL_GUARD: Final = 1e-30
"""Keeps the quotient behind the spectral radius finite."""

SPECTRAL_SQUARINGS: Final = 10
"""Squarings of the matrix: its 1024th power has converged to its leading vectors."""

LOG_DETERMINANT_MARGIN: Final = 1.01
"""Times the largest column sum that keeps the matrix of the log-determinant an M-matrix."""

# ---------------------------------------------------------------------------------------------------------------
# Half-samples: what probabilities are averaged over
# ---------------------------------------------------------------------------------------------------------------

RESAMPLED_ROUNDS: Final = 2
"""Turns of graph search and EM from the end of the fit: most half-samples stay after the first (trust 3)."""

RESAMPLED_DAGS: Final = 200
"""DAGs sampled in each half-sample for what has no exact sum: their number adds up."""

RESAMPLED_ROWS: Final = 20_000
"""Rows beyond which probabilities are those of the plain posterior: halves of so many hardly differ."""

FEWEST_HALVED: Final = 40
"""Rows, or groups of rows, that halves are drawn from, at least: regimes of ten rows must survive in each."""

FEWEST_HALVED_ROWS: Final = 100
"""Rows in all, whatever their groups: in halves of fewer than fifty nearly all parent sets are close to the best, and
fitting them takes longer than the fit itself."""

CAPPED: Final = 0.6
"""Largest probability of an arrow that a failed check puts in doubt. Of those above 0.9 in development, 160 of 327 were
right in violated tables of 8 variables, and 92 of 111 beside a failed check in tables of 5: 0.58 of all (trust 12)."""

# ---------------------------------------------------------------------------------------------------------------
# Checks: what a user is warned of
# ---------------------------------------------------------------------------------------------------------------

CHECK_LEVEL: Final = 1e-3
"""Probability of a false alarm of one check on a true model, corrected for the places it looks at; fitted models are
only nearly true, and the rates are higher (trust 1)."""

CHECKED_ROWS: Final = 5000
"""Rows that residuals are checked on, at most: enough to see a correlation of 0.1, and a fraction of a second."""

CHECKED_BLOCK: Final = 50
"""Neighbours that stay together where only some rows are checked."""

OUTERMOST: Final = 1e-4
"""Normal scores end here, so that no single row far out decides a check."""

HINTED_CORRELATION: Final = 0.1
"""Smallest correlation of residuals that is spoken of: below, a hidden cause would hardly turn an arrow (trust 1)."""

RESEMBLING: Final = 0.1
"""Smallest correlation of neighbouring rows that is spoken of: with it there are a fifth fewer rows than it seems."""

LASTING_ROUNDS: Final = 4
"""Times three steps of EM for how long regimes last in the order of the table: from a table that is not sorted to one
that is, since single rows do not tell their regimes (trust 7)."""

LEFT_OVER: Final = 0.3
"""Smallest change of level or scale that a regime may not leave in a variable it does not target, in standard
deviations of what is left: the search itself overlooks less in regimes of a hundred rows (trust 1)."""

BROAD: Final = 0.5
"""Share of the variables from which on a regime that was left out is another population."""

FEWEST_FOR_BROAD: Final = 4
"""Variables below which half of them are few enough for an intervention."""

SKEWED: Final = 1.5
"""Skewness from which on a column is asked whether a logarithm would mend it: exponential noise has 2."""

RIVAL_ROUNDS: Final = 20
"""Turns in which a rival explanation assigns rows anew, at most."""

RIVAL_SEARCHES: Final = 4
"""Turns after which its graph is searched again; it has arrived if graph and evidence stay."""

RIVAL_STEPS: Final = 15
"""Steps of EM on moments in each turn: with 5 the search for a hidden variable stopped in dense graphs (trust 2)."""

RIVAL_TOLERANCE: Final = 0.5
"""Nats below which evidence stays."""

FACTOR_LOADINGS: Final = (0.5, 0.7)
"""Correlations of every column with a hidden variable to begin with. From what columns share most, their principal
component, EM ends in dense graphs (trust 2)."""

LOADED: Final = 0.3
"""Correlation with the hidden variable from which on it moves a column."""

RIVAL_GAIN: Final = 5.0
"""Nats by which a rival has to win: 150 to 1, "very strong" by Kass and Raftery (1995). On clean tables rivals were
behind by 6 nats and more (trust 2 and 13)."""

ERROR_SHARES: Final = (0.05, 0.1, 0.2, 0.3)
"""Shares of the variance that errors of measurement are tried with, until larger ones explain less."""

ERROR_LIMIT: Final = 0.8
"""Errors are at most this share of the smallest variance that a column has in a regime: where an intervention holds a
value fixed there are hardly any."""

RIVAL_VARIABLES: Final = 15
"""Variables up to which rivals are compared: the graph is searched some fifty times, exactly where it can be."""

RIVAL_FEWEST_ROWS: Final = 500
"""Rows from which on they are compared: with fewer they win by nothing, and small fits would take twice as long."""

RIVAL_ROWS: Final = 10_000
"""Rows on which they are compared, at most."""

SURE: Final = 0.9
"""Probability from which on something is said without hedging."""

SAME_REGIMES: Final = 0.5
"""Adjusted Rand index from which on two halves of the rows agree on their regimes."""

SUBSETS: Final = 3
"""Fits without some of the variables, a third of them each."""

CONTRADICTED: Final = 0.1
"""Share of sure arrows of such fits that may contradict the fit to all variables."""

HELD_OUT_ROWS: Final = 50
"""Rows that a regime must have to be left out, and must leave."""

MENDED: Final = 0.4
"""Share of the skewness that may be left for a logarithm to have mended it."""

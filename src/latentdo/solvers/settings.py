"""Every number by which the solvers could be tuned, each with its reason and, where it was measured, a reference.

"search 4" is point 4 of the developers' notes ``experiments/notes/search.md``, "nonlinear 20" is point 20 of
``nonlinear.md``, and so on. A number without such a reference is a guess that has held so far; no other values were
tried. None of these numbers may be tuned to a single generator. Some numbers are elsewhere, because they are not a
matter of choice: codes and formulas, the floors and tolerances of the model (beside the formulas that they guard, in
:mod:`latentdo.model`), and the options of gradient fits, among them the published ones
(:class:`.GradientConfiguration`).
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
"""A regime, or a Gaussian component of a noise, with fewer (soft) rows than this counts as empty."""

NEGLIGIBLE: Final = 1e-7
"""Responsibilities below this do not change float64 moments, and are skipped."""

FAINT: Final = 1e-3
"""Rows with a smaller weight under a mechanism are left out where many networks are fitted, and where sums are
subtracted from those of all rows. It is also the weight given to all rows where no row follows the mechanism, so that
something can be fitted."""

UNDECIDED: Final = 1e-12
"""Probabilities are kept at least this far from 0 (and 1) when their odds are taken; rows with less belong to no
regime."""

RAREST: Final = 1e-6
"""Shares of rows are kept at least this far from 0 and 1 when their odds are taken."""

WORTHWHILE: Final = 1e-6
"""Smallest gain in nats for which a graph changes: well above the rounding of sums of scores (search, "A climb that
never ended")."""

SCORE_ROUNDING: Final = 1e-9
"""The same within one variable, whose score is a sum of a few terms."""

ORDER_ROUNDING: Final = 1e-12
"""Orders whose scores differ by less count as equal, and the later one is kept, since it may lead elsewhere."""

IMPOSSIBLE: Final = 1e6
"""How far below every possible parent set an impossible one is scored. With 1e15, rounding errors looked like gains,
and a climb never ended (search)."""

# ---------------------------------------------------------------------------------------------------------------
# Size: what is worth its time
# ---------------------------------------------------------------------------------------------------------------

MAX_VARIABLES: Final = 2000
"""Beyond this the moments of 16 regimes fill gigabytes, and one graph search takes hours."""

BLOCK: Final = 65_536
"""Rows assigned at once, so that memory beyond the responsibilities does not grow with n."""

LINEAR_SEARCH_ROWS: Final = 20_000
"""Largest number of rows on which structure is searched with linear mechanisms; more rows hardly change the result."""

ROWS_PER_REGIME: Final = 300
"""Smallest number of rows searched per regime allowed."""

NETWORK_SEARCH_ROWS: Final = 12_000
"""Largest number of rows on which structure is searched with networks; more rows take longer and give the same
result."""

SEARCH_STARTS_A_NETWORK: Final = 4
"""One start of a network by gradients takes as long as many starts of the search, so this many of ``n_init`` count as
one."""

# ---------------------------------------------------------------------------------------------------------------
# Regimes and mechanisms: what can be fitted at all
# ---------------------------------------------------------------------------------------------------------------

STRETCH: Final = 10
"""Neighbouring rows in time that are assigned together where regimes are proposed: enough to show a shift of one
standard deviation, and few compared with the visits to a regime that a series can show."""

WHITE_LAGS: Final = 20
"""Number of lags at which residuals are tested for autocorrelation: a few times the number of lags that the model may
use (together 7)."""

WHITE_LEVEL: Final = 1e-3
"""Level of that test, for all variables together. A false rejection costs a second search, in which evidence
decides."""

DEPENDENT: Final = 0.05
"""Nats per row that the past has to explain within regimes to justify a second search: where regimes overlap, wrong
assignments leave some dependence, and evidence would reject the result (together 7)."""

RESETTLED: Final = 0.1
"""Root mean square by which rows have to move, in units of their noise, when the background is fitted again given the
regimes found: smaller changes do not justify another search."""

MOST_STRETCHES: Final = 15
"""Largest number of stretches of time with a shifted level that are distinguished where a rough graph is searched."""

CONFOUNDED: Final = 0.9
"""Share of a regime's rows in one batch from which the two are reported as confounded."""

MIN_ROWS: Final = 10.0
"""A free regime with fewer (soft) rows is dropped."""

ROWS_PER_PARAMETER: Final = 2.0
"""A mechanism is fitted only if it has more rows per parameter than this."""

OWN_ROWS_PER_PARAMETER: Final = 3.0
"""The same for an intervened mechanism that uses its parents and, where networks are searched, for parents that are
added late."""

OWN_ROWS_PER_GAUSSIAN: Final = 50.0
"""Rows per Gaussian component below which the noise of an intervened mechanism has a single component."""

# ---------------------------------------------------------------------------------------------------------------
# Structural EM
# ---------------------------------------------------------------------------------------------------------------

EM_STEPS: Final = 10
"""Steps of EM on a fixed graph, unless a move asks for fewer or more."""

EM_TOLERANCE: Final = 0.1
"""EM stops after a step that gains fewer nats: differences that decide are half a nat or more."""

RELEARN_ROUNDS: Final = 10
"""Largest number of alternations of graph search and EM; they end when the evidence no longer rises."""

RELEARN_STEPS: Final = 5
"""Steps of EM between two graph searches; the next graph changes the optimum anyway."""

SETTLE_STEPS: Final = 50
"""Steps of EM once the graph is final."""

SHARING_ROUNDS: Final = 6
"""Rounds in which regimes join or leave a reference mechanism, before single flips complete the choice. With these, at
least 95 % of 240 random instances reach the brute-force optimum (search 1)."""

ALL_ROWS_STEPS: Final = 5
"""Steps of EM when a state found on a sample is transferred to all rows."""

ALL_ROWS_ROUNDS: Final = 2
"""Alternations of graph search and EM at that point: the graph of the sample is nearly right."""

ALL_ROWS_TOLERANCE: Final = 1.0
"""EM on all rows, or on rows read in parts, stops after a step that gains fewer nats."""

MAX_PASSES: Final = 20
"""Largest number of passes of EM over rows that are read in parts; a large sample leaves little to do, and three to six
passes are usual."""

GRAPH_PASSES: Final = 2
"""Passes after which the graph is searched again: all rows may show edges that the sample left open."""

# ---------------------------------------------------------------------------------------------------------------
# Starts of the linear search
# ---------------------------------------------------------------------------------------------------------------

START_NAMES: Final = ("residual", "mixture", "residual", "k-means")
"""Kinds of starts, in turn. Where regimes overlap, only the residual start works (search 4); elsewhere a mixture with
splits and merges reached the same optimum as EM from the truth (search 3)."""

AGREEMENT: Final = 0.5
"""Two starts that end within this many nats of each other have found the same optimum (gradient 6.4)."""

DOUBT_AFTER: Final = 2
"""Number of starts after which a single regime is tried where regimes overlap: if it wins, more starts would only fit
noise better."""

ANNEALING: Final = (-40.0, -20.0, -10.0)
"""Target priors of the first rounds from a clustering: wrong clusters must not acquire targets before they are
corrected."""

ANNEALING_ROUNDS: Final = 3
"""Alternations of graph search and EM with each of these priors."""

RESIDUAL_ROWS: Final = 2000
"""Rows on which parent sets are scored by mixtures with a minority mechanism; the minorities themselves are then found
in all rows. 6000 rows gained nothing (search 6)."""

RESIDUAL_CANDIDATES: Final = 7
"""Candidate parents in that scoring; nine candidates, with fresh starts for all sets, took ten times as long (search
4)."""

WIDE: Final = 50
"""With more variables than this, scoring takes most of the time of a start, and :data:`WIDE_CANDIDATES` suffice."""

WIDE_CANDIDATES: Final = 5
"""Candidate parents in that scoring, in wide tables."""

SMALL_LINEAR_SET: Final = 1
"""Parent sets up to this size try every initial guess of the minority; larger ones continue from their subsets (search
4)."""

MINORITY_STEPS: Final = 20
"""Steps of EM for one parent set's minority."""

MINORITY_TOLERANCE: Final = 0.1
"""This EM, and that of splits, stops after a step that gains fewer nats."""

FINAL_MINORITY_STEPS: Final = 200
"""Steps of EM for the minorities in all rows, once the parents are chosen."""

FINAL_MINORITY_TOLERANCE: Final = 0.01
"""This EM stops after a step that gains fewer nats."""

MINORITY_TAIL: Final = 0.1
"""Initial guesses of the minority: this share of the rows, at either end of the values or in their middle."""

MINORITY_CERTAINTY: Final = 0.9
"""Probability that such a guess gives to its rows: EM must be able to leave the guess."""

CHANCE_FACTOR: Final = 5.0
"""Minorities that coincide become a regime of their own if they do so this many times more often than by chance, and"""

CHANCE_MARGIN: Final = 10.0
"""in at least this many rows more than by chance."""

RESIDUAL_STEPS: Final = 30
"""Steps of EM with the targets proposed by the residual start held fixed (more steps: no gain, search 6)."""

RESIDUAL_LABELLED_STEPS: Final = 20
"""Further steps of EM where labels carry information about targets, which are then free."""

ROWS_PER_CLUSTER: Final = 20
"""A clustering has at most one cluster per this many rows."""

ROWS_PER_COVARIANCE: Final = 5
"""Rows per variable below which clusters have diagonal covariances."""

CLUSTER_RIDGE: Final = 1e-6
"""Added to the variances of clusters (the default of scikit-learn)."""

CLAIM: Final = 0.5
"""Labelled (soft) rows from which a cluster is identified with a label."""

LABELLED_ROWS: Final = 5
"""Labelled rows per variable and label from which a model of them assigns the other rows."""

LABELLED_ROUNDS: Final = 2
"""Alternations of graph search and EM for that model."""

# ---------------------------------------------------------------------------------------------------------------
# Births and merges of regimes, linear mechanisms
# ---------------------------------------------------------------------------------------------------------------

OVERLAP: Final = 0.9
"""Regimes overlap if rows belong to their likeliest regime with less than this probability on average."""

PROBE_ROWS: Final = 1500
"""Rows of a regime on which its possible splits are compared."""

MEMBERSHIP: Final = 0.02
"""Probability from which a row takes part in the splits of a regime."""

BIRTH_WORTH: Final = 1.5
"""Multiple of log(n) that a split must gain to be tried: the cost of a weight, a mean and a variance, half of log(n)
each."""

SPLIT_MISFITS: Final = (0.1, 0.35, 0.7)
"""Initial guesses for a split: these shares of the regime's rows, namely those that its mechanism explains worst."""

SPLIT_TAIL: Final = 0.15
"""A further guess: this share of the rows, at either end of the values."""

SPLIT_GLANCE: Final = 4
"""Steps of EM by which such guesses are compared."""

SPLIT_STEPS: Final = 25
"""Steps of EM for the best of them."""

SPLIT_EXTENSION_STEPS: Final = 10
"""Steps of EM that carry a split from the probed rows to all of a regime."""

BIRTH_GAIN: Final = 1.0
"""Nats by which a split must raise the evidence."""

BIRTH_ROUNDS: Final = 25
"""Rounds of splits, merges and graph search."""

MAX_ROUNDS_AT_LIMIT: Final = 8
"""Rounds of splits at the largest number of regimes allowed: the evidence may rise in every one (search,
"Cytometry")."""

BIRTH_TRIES: Final = 8
"""Splits tried in one round."""

BIRTH_TRIES_AT_LIMIT: Final = 3
"""The same where every split requires a merge."""

HELD_STEPS: Final = 3
"""Steps of EM after a target is removed: where the removal was right, the first one or two steps showed it."""

TARGET_TRIES: Final = 12
"""Number of consecutive targets whose removal lowers the evidence after which no more are tried; targets of the largest
regimes, where removals succeeded, come first."""

GRAPH_GAIN: Final = 0.5
"""Nats by which a new graph must raise the evidence to justify another round of splits."""

MERGE_TRIES: Final = 3
"""Merges, the most promising first, that are tried before a state counts as having none.

Of pairs by the variational bound; of all regimes that one variable tells apart by how many regimes hit it."""

DROP_TRIES: Final = 4
"""Number of regimes whose removal is tried, starting with those whose removal costs least with all mechanisms fixed."""

SEVERAL_MERGES_STEPS: Final = 5
"""Steps of EM after several merges at once; more merges follow."""

MAX_TAILS: Final = 30
"""Number of variables whose tails are tried in one round."""

TAIL: Final = 0.12
"""Share of the rows at either end of a variable from which a new regime may grow (search 5)."""

TAIL_SHARE: Final = 0.8
"""Responsibility of the new regime for each of these rows."""

TAIL_STEPS: Final = 12
"""Steps of EM in which the new regime keeps its target before the evidence has to justify it (search 5)."""

TAIL_LOSS: Final = 3.0
"""Multiple of log(n) by which the evidence may have fallen by then."""

FREE_TAIL_STEPS: Final = 30
"""Further steps of EM, where overlapping regimes move slowly,"""

FREE_TAIL_TOLERANCE: Final = 0.02
"""and the nats below which one of these steps is the last."""

# ---------------------------------------------------------------------------------------------------------------
# Graph search
# ---------------------------------------------------------------------------------------------------------------

EXACT_LIMIT: Final = 12
"""Up to this many variables dynamic programming over subsets takes well under a second."""

MAX_CANDIDATES: Final = 10
"""Candidate parents of a variable in larger problems: 2^10 parent sets each. Thirteen candidates took eight times as
long (search, "Dense graphs")."""

SPARE: Final = 4
"""Places among the candidates that are reserved for variables other than the current parents."""

SHORT_LIST: Final = 24
"""Number of candidate parents kept after the first round of a greedy selection."""

PARTIAL_RIDGE: Final = 1e-9
"""Share of the mean variance that is added before partial correlations are taken."""

MAX_ORDER_SWEEPS: Final = 200
"""Sweeps over all variables in one climb; a few are enough unless rounding errors interfere (search)."""

ORDER_SHAKES: Final = 50
"""Perturbed restarts of an order search."""

LONGEST_SHAKE: Final = 3
"""Largest number of blocks moved in one perturbation, and of variables in a block: enough to leave a local optimum
without losing the rest of the order."""

WALK_LIMIT: Final = 50
"""Number of variables up to which walks through the order are worth their time: with 60 variables and four edges each,
they took more than six minutes (search, "Dense graphs")."""

WALK_REACH: Final = 20
"""Number of places that a variable may move in either direction; longer moves are left to the search in tables."""

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
"""DAGs sampled where there is no exact sum: if they were independent, the standard error would be at most 2.2 %."""

SAMPLE_THINNING: Final = 20
"""Steps per variable between two sampled orders."""

BURN_IN: Final = 5
"""The burn-in is this fraction (one in 5) of the number of samples; sampling starts at a good DAG."""

ORDER_STEP: Final = 4
"""Largest number of places that a variable moves in one step of the sampler."""

# ---------------------------------------------------------------------------------------------------------------
# One regime: what hidden interventions have to beat
# ---------------------------------------------------------------------------------------------------------------

SCEPTICISM: Final = 2.0
"""Hidden interventions must beat a single regime by this multiple of log(n) nats, the error that either evidence may
have (search, "False alarms")."""

MAX_NOISE_GAUSSIANS: Final = 3
"""Gaussian components in the flexible noise of a single regime: two or three left false alarms, which sinh-arcsinh
noise caught (search, "False alarms")."""

MAX_NOISE_ROWS: Final = 2000
"""The shape of that noise is learnt from at most this many rows, and its gain scaled to all."""

DETERMINED: Final = 10.0
"""A variable whose noise variance is below this multiple of the variance floor has no noise but rounding."""

SINH_RANGE: Final = 50.0
"""Arguments of the sinh-arcsinh density are cut off here, long before float64 overflows."""

SINH_BOUNDS: Final = ((-5.0, 5.0), (-5.0, 5.0), (-2.0, 2.0), (-5.0, 5.0))
"""Bounds of its location, log-scale, log-tail and skewness, for standardised residuals."""

# ---------------------------------------------------------------------------------------------------------------
# What limits and zeros hide
# ---------------------------------------------------------------------------------------------------------------

FILLING_SWEEPS: Final = 15
"""Alternations of draws and parameter updates. The number needed depends on the share of hidden cells; for a fifth,
five would suffice."""

FILLING_STEPS: Final = 2
"""Steps of EM in each alternation, started from the previous mixture."""

FILLING_ROUNDS: Final = 2
"""How often the number of Gaussian components is chosen: the first time from values drawn from a single Gaussian."""

FILLING_MIXTURE: Final = 8
"""Largest number of Gaussian components: tables with four regimes need three to five (noise, atoms)."""

FILLING_STARTS: Final = 2
"""Starts of each mixture compared."""

FILLING_ROWS: Final = 5000
"""Largest number of rows to which mixtures are fitted; values are drawn in all rows."""

WHOLE_ROWS: Final = 20
"""Complete rows per variable from which a fit to the complete rows comes first. This is the better start: draws that
ignore regimes blur them (missing.md, 1)."""

MISSING_ROUNDS: Final = 2
"""How often missing cells are drawn from the fit: after the first draw all rows are searched afresh, after the second
the fit continues (missing.md, 1 and 2)."""

FILLING_RIDGE: Final = 1e-4
"""Added to the variances of standardised columns: copies of columns would otherwise leave no noise."""

# ---------------------------------------------------------------------------------------------------------------
# Any family of mechanisms, fitted to weighted rows
# ---------------------------------------------------------------------------------------------------------------

FAMILY_SEARCH_ROWS: Final = 5000
"""Largest number of rows on which structure is searched, since the time of every fit grows with them."""

MINORITIES_STEPS: Final = 20
"""Steps of EM in which each of the regimes that start together keeps its one target."""

REFERENCE_DOUBT: Final = 3.0
"""Nats by which the smaller of two regimes must be the better reference: odds of twenty to one."""

SUREST: Final = 1e-6
"""A single variable assigns a row to a regime with a probability between this and its complement: other variables may
contradict it."""

FAMILY_RESTARTS: Final = 2
"""How often regimes are grown afresh on the graph found so far, as long as that raises the evidence (noise, "Born
again")."""

FAMILY_ROUNDS_AT_LIMIT: Final = 0
"""Rounds of splits at the largest number of regimes allowed: each requires merges, and they took most of the time on
the light tunnel."""

FAMILY_CANDIDATES: Final = 6
"""Candidate parents of a variable: 2^6 parent sets, each of which costs one fit per regime."""

FAMILY_ROUNDS: Final = 3
"""How often regimes may join or leave a reference mechanism, each time with a fit."""

FAMILY_TABLES: Final = 4
"""How often tables of parent sets are rebuilt around the best graph of the previous ones, where columns are discrete:
scores of sets without a fit are rougher there (kinds, "Rough tables")."""

FAMILY_GAIN: Final = 0.1
"""Smallest gain in nats for which an edge changes: the accuracy of the fits on either side."""

FAMILY_HOPELESS: Final = 7.0
"""Nats by which a parent set may be behind in scores without a fit and still be fitted: a set that remains seven nats
behind has a probability below 1e-3."""

FAMILY_DOUBT: Final = 2.0
"""The same for sets with one more parent during hill climbing: what superfluous parents gain by a fit of their own."""

SHARING_FUNCTIONS: Final = 4
"""Functions of every parent used to guess which regimes share a mechanism: the main part of a curve."""

FAMILY_GLANCE: Final = 2
"""Steps of EM by which initial guesses of a split are compared."""

FAMILY_DISCRETE_GLANCE: Final = 8
"""The same for discrete variables, whose two mechanisms overlap (kinds, "Births")."""

FAMILY_SPLIT_STEPS: Final = 6
"""Steps for the best of them."""

FAMILY_EXCEPTION_STEPS: Final = 10
"""The same where the minority may turn out to be the majority: the two overlap more."""

FAMILY_FAINT: Final = 1e-4
"""Rows with a smaller weight are left out of a fit."""

FAMILY_STILL: Final = 1.0
"""Total change in the weights of rows, in rows, before a mechanism is fitted again: a fit is a maximum, so the loss
grows only with the square of this change."""

SAME_REGIME: Final = 0.5
"""Share of the rows of a regime that must be the same for its mechanism to keep its form: more than half, so that no
two regimes can claim it."""

SPLIT_RECORDS: Final = 8
"""Earlier splits of the rows of a mechanism that are remembered: moves that are tried and taken back come by the same
rows again. With one, a third of the time of these splits went into rows that had been split before."""

SAME_ROWS: Final = 0.01
"""Share of the rows that two states may assign otherwise, with the same graph and targets, to be one state: merges that
were undone by births came back within 0.2 to 0.7 %, and the nearest state that led elsewhere was 1.7 % away."""

SPLIT_STILL: Final = 0.005
"""Share of the rows whose weights may change before the rows of a mechanism are split afresh: fewer than in the
smallest regime that the evidence supports."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: fits
# ---------------------------------------------------------------------------------------------------------------

UNITS: Final = 8
"""Rectified units of a network; mechanisms of the paper's benchmark have 5, and 12 units were no better (nonlinear
4)."""

UNIT_STEPS: Final = 15
"""Steps of a fit after a unit is dropped,"""

UNIT_TRIES: Final = 2
"""and number of units, starting with the least important, whose removal is tried before all count as needed."""

FIT_STARTS: Final = 3
"""Random starts of a fit: residuals are then at the level of the true noise for up to four parents (nonlinear 4,
34)."""

START_ROWS: Final = 1500
"""Rows on which starts are compared (nonlinear 4)."""

START_STEPS: Final = 25
"""Steps of each start on them."""

HEAVY: Final = 0.3
"""Share of the largest weight from which a row may be among these rows."""

FIT_STEPS: Final = 30
"""Steps on all rows from the best start; 200 steps leave the same residuals (nonlinear 34)."""

FIT_TOLERANCE: Final = 1e-4
"""Share of the sum of squares below which a step gains nothing."""

SLOW_STEPS: Final = 2
"""Number of consecutive such steps that ends a fit."""

DAMPING: Final = 1e-2
"""Damping of the first step."""

DAMPING_FACTOR: Final = 5.0
"""Factor by which it grows after a step that failed, and falls after one that succeeded."""

SINGULAR_FACTOR: Final = 10.0
"""Factor by which it grows where the equations could not be solved."""

LEAST_DAMPING: Final = 1e-10
"""It never falls below this."""

DAMPING_TRIES: Final = 6
"""Dampings tried for one step before the fit ends."""

DAMPING_FLOOR: Final = 1e-9
"""Scale, per row, of a parameter that no row moves, so that dead units are damped too."""

RIDGE: Final = 1e-12
"""Per row; keeps the normal equations definite where units are dead or inputs collinear."""

START_RIDGE: Final = 1e-6
"""The same for the last layer of a random start, whose directions may be nearly parallel."""

OWN_RIDGE: Final = 1e-9
"""The same for intervened mechanisms."""

MECHANISM_STEPS: Final = 3
"""Steps of a fit that continues from the previous one, as in every round of EM."""

MECHANISM_ROUNDS: Final = 2
"""Alternations of network and mixed noise in such a fit."""

SEARCH_NOISE: Final = 1
"""Gaussian components in the noise while structure is searched, whatever the density: mixed noise explains bad fits too
well (nonlinear 10, 24)."""

MIXED_NOISE: Final = 3
"""Gaussian components in mixed noise, which hidden regimes also have to beat: enough for noise that is neither Gaussian
nor of constant width."""

NOISE_VARIANCES: Final = (0.05, 2.0)
"""Smallest and largest variance with which mixed noise starts, as shares of the total."""

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
"""Parent sets scored in total, which limits the candidate parents of a variable,"""

FEWEST_CANDIDATES: Final = 3
"""but to no fewer than this."""

PARAMETERS_AN_EDGE: Final = 6.0
"""Cost of a parent, in parameters: a few of the random features are present because of it. With 3 log n per edge, no
true edge was violated in eight tables (nonlinear 2)."""

SMALL_SET: Final = 2
"""Parent sets up to this size try every initial guess of the minority; larger ones continue from their subsets."""

MOVED: Final = 0.05
"""Minorities that differ by less than this, on average over rows, count as the same."""

ROUGH_STEPS: Final = 10
"""Steps of EM from a guess,"""

HANDED_STEPS: Final = 5
"""and from the minority of a smaller or larger parent set (nonlinear 2)."""

ROUGH_TOLERANCE: Final = 2.0
"""This EM stops after a step that gains fewer nats: scores of random features are no more exact."""

ROUGH_RIDGE: Final = 1e-7
"""Added to the diagonal of products of features found by subtraction, whose rounding could make them singular."""

FEWEST_MINORITY: Final = 8.0
"""Smallest number of rows in a minority."""

LARGEST_LABEL: Final = 0.9
"""Share of the rows from which a label is not used as a guess of a minority."""

MINORITY_DOUBT: Final = 0.02
"""Probability that a guess gives to rows outside it."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: regimes
# ---------------------------------------------------------------------------------------------------------------

MINORITY_ROUNDS: Final = 12
"""Rounds of EM for one variable's minority under a network."""

FIRST_STEPS: Final = 12
"""Steps of EM with the first regimes."""

NETWORK_EM_TOLERANCE: Final = 1.0
"""EM with networks stops after a step that gains fewer nats."""

TRIAL_STEPS: Final = 4
"""Steps of EM with networks after a change of their weights, of targets or of an edge."""

MOVE_GAIN: Final = 1.0
"""Nats that a refitted network must gain to be accepted."""

MAX_TRIES: Final = 6
"""Moves of one kind that are tried before the kind is abandoned: each costs a few rounds of EM."""

REFIT_STARTS: Final = 4
"""Random starts of networks whose residuals do not have constant width,"""

REFIT_STEPS: Final = 120
"""the steps of their fits,"""

REFIT_TOLERANCE: Final = 1e-5
"""and the share of the sum of squares below which such a step gains nothing (nonlinear 7)."""

TARGET_GAIN: Final = 0.5
"""Nats that a change of targets must gain."""

SIMPLIFY_STARTS: Final = 2
"""Random starts, besides its own weights, of a network whose target is removed,"""

SIMPLIFY_STEPS: Final = 60
"""the steps of its fit (nonlinear 8),"""

BIRTH_PER_ROW: Final = 0.01
"""Nats per row that a split must gain: networks are never perfect, and new regimes would correct them bit by bit
(nonlinear 19)."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: splits of regimes
# ---------------------------------------------------------------------------------------------------------------

ENOUGH: Final = 500
"""Rows of other regimes that suffice to show the noise of a mechanism (nonlinear 35)."""

LEAVING_ROWS_PER_PARENT: Final = 5
"""Rows per parameter of a line below which the rows that are split off cannot show an intervention."""

STILL_EXPLAINED: Final = 0.5
"""If a line explains more than this share of their variance, rows that are split off indicate a bad network (nonlinear
7),"""

NOISIER: Final = 10.0
"""unless interventions may be imperfect and the noise of these rows is this many times the usual one."""

COMMON: Final = 0.5
"""Rows that deviate from a mechanism are not a regime if such rows are at least this many times as frequent in other
regimes (nonlinear 26)."""

PEAKS: Final = 6
"""Largest number of Gaussians fitted to the values of a target before overlapping ones are merged (nonlinear 38)."""

CLEAR: Final = 0.97
"""Mean certainty with which the rows of a regime must belong to one of its parts."""

SMALLEST_PART: Final = 0.05
"""Smallest share of a regime's rows in a part."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: what moves between regimes (nonlinear 16)
# ---------------------------------------------------------------------------------------------------------------

CRITICAL: Final = 1.63
"""Distance of two empirical distribution functions that one pair of samples in a hundred exceeds, in units of
``sqrt(1/n + 1/m)`` (Kolmogorov and Smirnov)."""

SMALL_SHIFT: Final = 0.2
"""Two distributions count as equal only if a larger distance than this would have been detected."""

LARGE_SHIFT: Final = 0.3
"""Two distributions farther apart than this differ clearly: variables that depend on this one should move too."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: parents and directions
# ---------------------------------------------------------------------------------------------------------------

ROWS_PER_UNIT: Final = 3
"""Rows per unit below which the parents of a variable cannot be determined."""

FULL_STEPS: Final = 40
"""Steps of the fit with all predecessors, before any is dropped, and of a fresh fit beside it;"""

FULL_NOISE_STEPS: Final = 10
"""steps of the latter with the noise of the former."""

ELIMINATION_STEPS: Final = 15
"""Steps of a fit with one input fewer, or more."""

LIFT_GAIN: Final = 0.5
"""Nats by which a smaller network must be better for the larger one to continue from it (nonlinear 6),"""

LIFTS_PER_INPUT: Final = 3
"""and how often that may happen, per input."""

WIDTHS: Final = (UNITS, 12)
"""Units that a smaller parent set may use before a larger set is accepted (nonlinear 36)."""

WORTH: Final = 2.0
"""Multiple of the mean square residual with all parents: a smaller set that leaves more cannot be right (nonlinear
36)."""

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
"""from this many of them."""

SCREENED_ROWS: Final = 3000
"""Rows on which variables outside the candidates are screened as parents,"""

SCREEN_FEATURES: Final = 12
"""and random features of each, alone and with the present parents: enough to show that it matters."""

TURN_ROWS: Final = 3000
"""Rows on which reversals of edges are compared."""

UNTURNED: Final = 20.0
"""Nats lost by reversing an edge from which its direction counts as certain: e^-20 is negligible."""

TURNS_PER_VARIABLE: Final = 0.5
"""Edges tried in the reverse direction, per variable: six for ten variables were enough (nonlinear 9)."""

# ---------------------------------------------------------------------------------------------------------------
# Networks: stages
# ---------------------------------------------------------------------------------------------------------------

NETWORK_START_NAMES: Final = ("minorities", "mixture", "mixture")
"""Kinds of starts, in turn, the slower one first. With one to three targets per regime, a mixture led to ARI 0.997
where minorities led to 0.55 (nonlinear 48)."""

START_GAIN: Final = 0.1
"""Nats per row by which a later start must be better while all predecessors are inputs. A start with one regime too few
had 0.04 more; where minorities failed, a mixture had 0.25 and 2 more (nonlinear 49, 54)."""

WIDEST: Final = 40
"""Number of variables above which the order is taken from the curves found before: rough scores of all pairs would take
minutes."""

LOOKS: Final = 2
"""Further searches for the order, each with the regimes that the previous one led to (nonlinear 18, 32)."""

LOOK_GAIN: Final = 1.0
"""Nats by which another order must be better if it needs no more coincidences."""

MISFIT: Final = 0.25
"""Nats per row by which evidence may be wrong because the noise is not what the networks assume (nonlinear 18, 28),"""

MIXED_MISFIT: Final = 2.0
"""times this where noise may be mixed (nonlinear 32)."""

LUCK: Final = 0.1
"""Nats per row that networks with mixed noise may gain by a reversed edge, or by one target too many (nonlinear 39)."""

SETTLED: Final = 0.97
"""Agreement (adjusted Rand index) of the regimes with those for which the order was found, at which the order is final
(nonlinear 38)."""

REMAINING: Final[Mapping[str, float]] = {
    "regimes": 1.7, "moves": 1.5, "parents": 0.8, "noise": 0.7, "births": 0.4, "final": 0.0,
}  # fmt: skip
"""Time left after a step as a share of the time until regimes were first found; from traces of ten variables."""

# ---------------------------------------------------------------------------------------------------------------
# Lines or networks (nonlinear 20, 43)
# ---------------------------------------------------------------------------------------------------------------

CURVE_ROWS: Final = 500
"""Number of rows, in the table and per variable, below which curves are not tried."""

SCREEN_ROWS: Final = 1500
"""Rows on which a variable is screened,"""

SCREEN_STARTS: Final = 2
"""and random starts of the network there."""

BENT: Final = 0.7
"""Nats per row that a curve of one variable must gain over a straight line for networks to be searched at once. On
linear tables with hidden regimes gains of up to 0.6 were seen, on nonlinear ones 0.9 and more (nonlinear 20). This
saves the time of fitting curves and decides nothing else: evidence does."""

PERHAPS_BENT: Final = 0.35
"""The same by the minority beside a line, from which all guesses of a minority are tried: half of it. On twenty tables
that minority alone gave 0.46 to 1.2 times the gain, and said the same of all; on linear ones half of it is rare."""

PRODUCT_UNITS: Final = 2
"""Approximate number of units with which a network can represent the product of two variables: the cost that a screen
for products has to cover."""

# ---------------------------------------------------------------------------------------------------------------
# Gradient fits
# ---------------------------------------------------------------------------------------------------------------

PAPER_ROWS: Final = 10
"""Rows per regime and variable below which the published algorithm is known to return noise (gradient 6.1)."""

MAX_BACK_OFFS: Final = 8
"""How often a run may halve its learning rate after its loss diverged; it is then a 256th."""

BROKEN_LOSS: Final = 100.0
"""Nats per row by which the bound must fall to count as diverged, or"""

BROKEN_SHARE: Final = 10.0
"""this multiple of its best value, whichever is larger."""

IMPROVEMENT: Final = 1e-4
"""Share of the best bound per row by which a chunk of steps must beat it."""

SETTLING: Final = 0.01
"""Final share of the learning rate in a run with a fixed graph."""

ANNEALED_TEMPERATURE: Final = 0.2
"""Temperature of the targets per nat of their extra cost."""

LARGEST_TARGET_LOGIT: Final = 10.0
"""Logits of targets stay within this range, so that probabilities can change again."""

PROPOSED_TARGETS: Final = 1.0
"""Initial logits of proposed targets exceed those of proposed edges by this much (gradient 3)."""

WEIGHT_STEPS: Final = 20
"""Steps of EM for the regimes' weights alone."""

PAIR_ROWS: Final = 2000
"""Rows evaluated at once under all regimes."""

CLUSTER_ROWS: Final = 5
"""A clustering has at most one cluster per this many rows."""

CLUSTER_STARTS: Final = 10
"""Starts of the mixture of Gaussians: ARI 0.95 to 0.97, where a single start by k-means had 0.84 (gradient 2)."""

CLUSTER_STEPS: Final = 60
"""Steps of its EM."""

COMPARED_ROWS: Final = 500
"""Rows of a cluster that are compared with those of others to find the reference,"""

FEWEST_COMPARED: Final = 5
"""at least this many of them,"""

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
"""Alternations of EM and graph search from the end of the fit: most half-samples keep the graph at the first (trust
3)."""

RESAMPLED_PAIRS: Final = 1e-6
"""Smallest probability, given all rows, with which two variables are connected if half-samples are to consider it: an
edge that is 14 nats behind would come back in one of four half-samples with a probability of about a hundredth."""

RESAMPLED_CERTAIN: Final = 1e-12
"""Largest probability, given all rows, of being without an edge that half-samples take for granted: 28 nats, of which
the difference in a half-sample is seven apart (a standard deviation), so that one in twenty thousand would do without
it. Posteriors are exact to about 5e-13. Tables of two tables took 2.4 and 2.7 s instead of 8.1 and 5.9, with the same
probabilities of these edges to three digits."""

RESAMPLED_DAGS: Final = 200
"""DAGs sampled in each half-sample where there is no exact sum; those of all half-samples add up."""

RESAMPLED_ROWS: Final = 20_000
"""Number of rows above which probabilities are those of the plain posterior: halves of such tables hardly differ."""

FEWEST_HALVED: Final = 40
"""Smallest number of rows, or groups of rows, from which halves are drawn: regimes of ten rows must survive in each."""

FEWEST_HALVED_ROWS: Final = 100
"""Smallest number of rows in total, whatever their groups: in halves of fewer than fifty rows nearly all parent sets
are close to the best, and fitting them takes longer than the fit itself."""

SURE: Final = 0.9
"""Probability from which a statement is made without qualification."""

CAPPED: Final = 0.6
"""Largest probability of an arrow that a failed check puts in doubt. Of those above 0.9 in development, 160 of 327 were
right in violated tables of 8 variables, and 92 of 111 beside a failed check in tables of 5: 0.58 of all (trust 12)."""

CAPPED_DIRECTION: Final = 0.88
"""Largest probability of the direction of such an arrow if it exists; that it exists is capped at the rest. Of arrows
in doubt that connected the right pair, 199 of 224 had the right direction in development tables of the benchmark, and
129 of 144 in tables of another generator (trust 20): what is in doubt is mostly the connection."""

# ---------------------------------------------------------------------------------------------------------------
# Checks: what a user is warned of
# ---------------------------------------------------------------------------------------------------------------

CHECK_LEVEL: Final = 1e-3
"""Probability of a false alarm of one check on a true model, corrected for multiple testing; fitted models are only
approximately true, and the rates are higher (trust 1)."""

CHECKED_ROWS: Final = 5000
"""Largest number of rows on which residuals are checked: enough to detect a correlation of 0.1, in a fraction of a
second."""

CHECKED_BLOCK: Final = 50
"""Neighbouring rows that stay together where only some rows are checked."""

OUTERMOST: Final = 1e-4
"""Normal scores are truncated at this tail probability, so that no single outlier decides a check."""

HINTED_CORRELATION: Final = 0.1
"""Smallest correlation of residuals that is reported: below it, a hidden cause would hardly reverse an arrow (trust
1)."""

RESEMBLING: Final = 0.1
"""Smallest correlation of neighbouring rows that is reported: with it, the effective number of rows is a fifth
smaller."""

LASTING_ROUNDS: Final = 4
"""Times three steps of EM for how long regimes last in the order of the table: from a table that is not sorted to one
that is, since single rows do not tell their regimes (trust 7)."""

LEFT_OVER: Final = 0.3
"""Smallest change of level or scale, in standard deviations of the residuals, that counts as evidence of a missing
target: the search itself overlooks smaller changes in regimes of a hundred rows (trust 1)."""

BROAD: Final = 0.5
"""Share of changed variables from which a regime that was left out counts as another population."""

FEWEST_FOR_BROAD: Final = 4
"""Number of variables below which an intervention may well change half of them."""

SKEWED: Final = 1.5
"""Skewness from which a logarithm is tried on a column: exponential noise has 2."""

RIVAL_ROUNDS: Final = 20
"""Largest number of rounds in which a rival explanation reassigns rows."""

RIVAL_SEARCHES: Final = 4
"""Rounds after which its graph is searched again; it has converged if graph and evidence no longer change."""

RIVAL_STEPS: Final = 15
"""Steps of EM on moments in each round: with 5, the search for a hidden variable stopped in dense graphs (trust 2)."""

RIVAL_TOLERANCE: Final = 0.5
"""Nats below which the evidence counts as unchanged."""

RIVAL_CLEAR: Final = 20.0
"""Nats between a rival and the fit, after one climb from every start, from which the verdict stands. Rivals that won
in the end on development tables were up to 15 nats behind by then (trust 19)."""

RIVAL_CLIMBS: Final = 24
"""Largest number of climbs of a rival: two dozen reached what more did (trust 19)."""

FACTOR_LOADINGS: Final = (0.3, 0.5, 0.7, 0.85)
"""Initial correlations of every column with the hidden variable. Started from the principal component of the columns,
EM ends in dense graphs (trust 2)."""

LOADED: Final = 0.3
"""Correlation with the hidden variable from which it counts as moving a column."""

RIVAL_GAIN: Final = 5.0
"""Nats from which a rival is said to be better: 150 to 1, "very strong" by Kass and Raftery (1995)."""

RIVAL_WEIGHT: Final = (1.0 - SURE) / (1.0 - CAPPED)
"""Probability of a rival from which no arrow is sure: an arrow that is certain by the fit, and as probable as those in
doubt by the rival, is then less probable than ``SURE``."""

ERROR_SHARES: Final = (0.05, 0.1, 0.2, 0.3)
"""Shares of measurement error in the variance that are tried, until a larger one explains less."""

ERROR_LIMIT: Final = 0.8
"""Measurement error is at most this share of the smallest variance of a column in any regime: where an intervention
holds a value fixed, there is hardly any."""

RIVAL_VARIABLES: Final = 15
"""Number of variables up to which rivals are compared: the graph is searched about fifty times, exactly where
possible."""

RIVAL_FEWEST_ROWS: Final = 500
"""Number of rows from which rivals are compared: with fewer they win by nothing, and small fits would take twice as
long."""

RIVAL_ROWS: Final = 10_000
"""Largest number of rows on which rivals are compared."""

SAME_REGIMES: Final = 0.5
"""Adjusted Rand index from which two halves of the rows agree on their regimes."""

SUBSETS: Final = 3
"""Number of fits that each leave out a third of the variables."""

CONTRADICTED: Final = 0.1
"""Largest share of sure arrows of such fits that may contradict the fit to all variables."""

HELD_OUT_ROWS: Final = 50
"""Smallest number of rows in a regime that is left out, and in the remaining rows."""

MENDED: Final = 0.4
"""Largest share of the skewness that may remain if a logarithm is to count as a remedy."""

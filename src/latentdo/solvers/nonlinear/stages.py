"""The stages of a search for networks, from nothing to the best state; see the package for the way they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.metrics import adjusted_rand_score

from latentdo.model.mechanisms import NetworkMechanism
from latentdo.model.mechanisms.network import with_inputs
from latentdo.solvers.nonlinear.candidates import promising_parents
from latentdo.solvers.nonlinear.learner import fit_from, flexible_noise
from latentdo.solvers.nonlinear.marginal_shifts import Changes, conflicts
from latentdo.solvers.nonlinear.mending import improve
from latentdo.solvers.nonlinear.order import (
    NetworkRun,
    NetworkStanding,
    as_matrix,
    as_networks,
    find_order,
    is_better,
    is_wide,
    look,
    look_again,
)
from latentdo.solvers.nonlinear.orientation import doubtful_edges, reverse
from latentdo.solvers.nonlinear.parents import find_parents_of
from latentdo.solvers.nonlinear.separated_peaks import divide
from latentdo.solvers.nonlinear.starts import best_start
from latentdo.solvers.search.driver import doubt
from latentdo.solvers.search.fewer_regimes import fit_into
from latentdo.solvers.settings import (
    LOOK_GAIN,
    LUCK,
    MIXED_NOISE,
    OWN_ROWS_PER_PARAMETER,
    SETTLED,
    TRIAL_STEPS,
)

Stage = Callable[[NetworkRun, NetworkStanding], NetworkStanding]


def search(run: NetworkRun) -> NetworkStanding:
    """All stages, one after another."""
    problem = run.problem
    changes = None
    if problem.all_labelled and problem.n_labelled > 1:
        changes = Changes.between(problem.z, np.eye(problem.n_labelled)[problem.labels])
        run = replace(run, problem=replace(problem, known=changes.known(problem)))
    wide = is_wide(run)
    standing = best_start(run) if changes is None or wide else find_order(run, run.problem, changes)
    for stage in (look_again, *FINISH, divide_regimes):
        standing = stage(run, standing)
    if problem.n_labelled == 0:
        state = fit_into(run.networks(standing.n_gaussians), standing.state, problem.max_regimes)
        standing = replace(standing, state=state)
    return compare_with_single_regime(run, run.note("final", standing))


def find_parents(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Keep the inputs that are parents, and settle the rows again."""
    return run.note("parents", drop_inputs(run, standing))


def drop_inputs(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Eliminate inputs that a network can do without; parents are then found from scratch as well."""
    problem, state = run.problem, standing.state
    count = standing.n_gaussians
    thorough = count > 1 or not run.flexible
    found = run.each(
        find_parents_of,
        (
            (problem, j, inputs.tolist(), state.mechanism(j), state.following(j), count, thorough)
            for j, inputs in enumerate(state.model.parents)
        ),
    )
    adjacency = as_matrix([list(parent_set.parents) for parent_set in found])
    mechanisms = {j: parent_set.mechanism for j, parent_set in enumerate(found)}
    settled = fit_from(run.networks(count), state.responsibilities, adjacency, state.targets, mechanisms)
    return replace(standing, state=settled, parents=tuple(found))


def find_regimes(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Regimes again, now that networks fit well; with flexible noise parents too."""
    if not run.flexible:
        return replace(standing, state=improve(run.networks(), standing.state))
    state = standing.state
    mixed = fit_from(
        run.networks(MIXED_NOISE), state.responsibilities, state.adjacency, state.targets, state.mechanisms
    )
    standing = run.note("noise", replace(standing, state=mixed, n_gaussians=MIXED_NOISE))
    standing = run.note("births", replace(standing, state=improve(run.networks(MIXED_NOISE), mixed)))
    pruned = drop_inputs(run, standing)
    return pruned if is_better(run, pruned.state, standing.state) else standing


def add_parents(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Give variables parents that were not among their candidates, where networks can use them."""
    problem, count = run.problem, standing.n_gaussians
    networks = run.networks(count)
    for j in range(problem.n_variables):
        state, before = standing.state, standing.parents[j]
        more = promising_parents(problem, state, j, run.rng)
        if not more:
            continue
        inputs = sorted([*before.parents, *more])
        start = with_inputs(before.mechanism.parameters, list(before.parents), inputs)
        wider = NetworkMechanism.of(start, before.mechanism.noise, len(inputs))
        if state.following(j).sum() < OWN_ROWS_PER_PARAMETER * wider.n_parameters:
            continue
        found = find_parents_of(problem, j, inputs, wider, state.following(j), count, True, run.rng)
        if found.parents == before.parents:
            continue
        adjacency = state.adjacency.copy()
        adjacency[:, j] = 0
        adjacency[list(found.parents), j] = 1
        mechanisms = state.mechanisms | {j: found.mechanism}
        trial = fit_from(networks, state.responsibilities, adjacency, state.targets, mechanisms, TRIAL_STEPS)
        if is_better(run, trial, state):
            parents = (*standing.parents[:j], found, *standing.parents[j + 1 :])
            standing = replace(standing, state=trial, parents=parents)
    return standing


def turn_edges(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """Try edges that regimes object to, and those that quick fits are least sure of, the other way round."""
    before = standing.state
    networks = run.networks(standing.n_gaussians)
    changes = Changes.between(run.problem.z, before.responsibilities)
    edges = [(int(i), int(j)) for i, j in np.argwhere(changes.impossible & (before.adjacency == 1))]
    edges += [edge for edge in doubtful_edges(networks, before) if edge not in edges]
    margin = LUCK * run.problem.n_rows if run.flexible else LOOK_GAIN
    losses: dict[tuple[int, int], float] = {}
    for i, j in edges:
        state = standing.state
        turned = reverse(networks, state, i, j, run.rng) if state.adjacency[i, j] else None
        if turned is None:
            continue
        loss = state.evidence - turned[0].evidence
        if is_better(run, turned[0], state, margin):
            parents = [turned[1].get(v, one) for v, one in enumerate(standing.parents)]
            standing, losses[j, i] = replace(standing, state=turned[0], parents=tuple(parents)), -loss
        else:
            losses[i, j] = loss
    standing = replace(standing, turned=losses)
    if standing.state is not before:
        standing = replace(standing, state=improve(networks, standing.state))
    run.journal.keep(standing)
    return standing


FINISH: tuple[Stage, ...] = (find_parents, find_regimes, add_parents, turn_edges)
"""From predecessors as inputs to parents, and to what good networks make possible."""


def divide_regimes(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """All over again with finer regimes, if they are no longer those that the order was found with."""
    problem, state = run.problem, standing.state
    if not run.flexible or problem.all_labelled or state.n_regimes == 1 or is_wide(run):
        return standing
    responsibilities, targets = divide(problem, state)
    settled = adjusted_rand_score(standing.labels, responsibilities.argmax(axis=1)) > SETTLED
    if settled and not conflicts(problem, state):
        return standing
    finer = as_networks(run, responsibilities, state.adjacency, targets, state.model)
    fresh = look(run, replace(standing, state=finer))
    for stage in FINISH:
        fresh = stage(run, fresh)
    # Mixed noise makes evidence unreliable; interventions that hit one variable more must be worth it.
    surplus = int(fresh.state.targets.sum()) - int(state.targets.sum())
    better = is_better(run, fresh.state, state, LUCK * problem.n_rows * surplus)
    standing = fresh if better else standing
    run.journal.keep(standing)
    return standing


def compare_with_single_regime(run: NetworkRun, standing: NetworkStanding) -> NetworkStanding:
    """One regime with flexible noise, if hidden interventions do not explain the rows much better."""
    problem, state = run.problem, standing.state
    if problem.n_labelled or state.n_regimes == 1:
        return standing
    everyone = np.ones((problem.n_rows, 1))
    none = np.zeros((1, problem.n_variables), dtype=np.int8)
    networks = run.networks(standing.n_gaussians)
    single = fit_from(networks, everyone, state.adjacency, none, state.mechanisms)
    # Both sides may use flexible noise, or the comparison would be about noise.
    flexible, found = (
        one.evidence + sum(gain for _, gain in flexible_noise(networks, one)) for one in (single, state)
    )
    doubtful, comparison = doubt(problem, float(found), {"one regime, flexible noise": float(flexible)})
    if doubtful:
        # The graph was found with minorities set aside; without them it is another question.
        standing = search(replace(run, problem=replace(problem, max_regimes=1)))
    return replace(standing, comparison=comparison)

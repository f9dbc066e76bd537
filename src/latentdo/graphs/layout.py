"""Where to draw the variables of a DAG: layers from causes to effects, few crossings, straight long edges.

The method is Sugiyama's: (1) give every variable a layer below all its causes, with a bound on the width;
(2) break long edges at invisible points, one a layer they pass; (3) order each layer by the barycentre of its
neighbours, sweeping up and down, and keep the order with the fewest crossings; (4) place each layer as near to its
neighbours as order and widths allow, which is a least-squares problem that isotonic regression solves exactly.
Parts of the graph that nothing connects are laid out one by one and packed onto shelves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.isotonic import isotonic_regression

from latentdo.graphs import Adjacency, GraphLike, as_adjacency, topological_order

Array = NDArray[np.float64]
Point = tuple[float, float]

_GAP = 26.0  # between neighbours in a layer
_BEND_GAP = 12.0  # between an edge that passes a layer and its neighbours there
_PART_GAP = 60.0  # between parts of the graph that nothing connects
_PORT_STEP = 9.0  # between the ends of edges on one side of a box
_SWEEPS = 24


@dataclass(frozen=True, eq=False)
class Layout:
    """A drawing without ink.

    Parameters
    ----------
    positions : ndarray [d, 2]
        Centre of every variable; x to the right, y downwards.
    routes : dict from (cause, effect) to points
        What each edge passes, from its cause to its effect; ends lie within the boxes, at their centre height.
    width, height : float
        Size of the drawing, the variables' widths included.
    """

    positions: Array
    routes: dict[tuple[int, int], tuple[Point, ...]]
    width: float
    height: float


def layered_layout(
    adjacency: GraphLike,
    widths: Sequence[float] | ArrayLike | None = None,
    *,
    layer_height: float = 92.0,
    aspect: float = 1.6,
) -> Layout:
    """Lay out a DAG from top (causes) to bottom (effects); variables without edges stand in rows of their own below.

    Parameters
    ----------
    adjacency : array_like or DataFrame, shape (d, d)
        A DAG; row causes column.
    widths : array_like [d], optional
        Width of each variable's box; 60 by default.
    layer_height : float
        Distance between layers.
    aspect : float
        Desired width over height; it bounds how many variables share a layer.

    Returns
    -------
    Layout

    Examples
    --------
    >>> layout = layered_layout([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> layout.positions[:, 1].tolist()
    [0.0, 92.0, 184.0]
    """
    matrix = as_adjacency(adjacency)
    d = len(matrix)
    sizes = np.full(d, 60.0) if widths is None else np.asarray(widths, dtype=np.float64)
    if d == 0:
        return Layout(np.zeros((0, 2)), {}, 0.0, 0.0)
    connected = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    typical = float(sizes.mean()) + _GAP
    x, y = np.zeros(d), np.zeros(d)
    routes: dict[tuple[int, int], tuple[Point, ...]] = {}
    blocks = [
        _block(matrix, part, sizes, typical, layer_height, aspect) for part in _parts(matrix, connected)
    ]
    bottom = _pack(blocks, x, y, routes, layer_height, aspect)
    capacity = max(3, math.ceil(math.sqrt(aspect * d * layer_height / typical)))
    _place_isolated(np.flatnonzero(~connected), sizes, x, y, bottom, capacity, layer_height)
    bends = [px for route in routes.values() for px, _ in route]
    left = min([float((x - sizes / 2).min()), *bends])
    right = max([float((x + sizes / 2).max()), *bends])
    positions: Array = np.column_stack([x - left, y]).round(2)
    moved = {
        edge: tuple((round(px - left, 2), round(py, 2)) for px, py in route) for edge, route in routes.items()
    }
    return Layout(positions, moved, round(right - left, 2), float(y.max()))


def bends(points: Sequence[Point]) -> list[tuple[Point, Point, Point]]:
    """Cubic curves through points that leave and enter each of them vertically: two control points and the end."""
    curves = []
    for (ax, ay), (bx, by) in pairwise(points):
        half = (by - ay) / 2
        curves.append(((ax, ay + half), (bx, by - half), (bx, by)))
    return curves


@dataclass(frozen=True, eq=False)
class _Block:
    """The drawing of one connected part, from (0, 0) to (width, height)."""

    members: NDArray[np.int64]
    positions: Array
    routes: dict[tuple[int, int], tuple[Point, ...]]
    width: float
    height: float


def _parts(matrix: Adjacency, connected: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Variables that edges connect, whatever their direction; the largest part first."""
    _, label = connected_components(matrix, directed=False)
    parts = [np.flatnonzero((label == part) & connected) for part in np.unique(label[connected])]
    return sorted(parts, key=lambda members: (-len(members), members[0]))


def _block(
    matrix: Adjacency,
    members: NDArray[np.int64],
    sizes: Array,
    typical: float,
    layer_height: float,
    aspect: float,
) -> _Block:
    own = matrix[np.ix_(members, members)]
    capacity = max(3, math.ceil(math.sqrt(aspect * len(members) * layer_height / typical)))
    layer = _layers(own, np.ones(len(members), dtype=np.bool_), capacity)
    x, y, routes = _place(own, layer, sizes[members], layer_height)
    bends = [px for route in routes.values() for px, _ in route]
    left = min([float((x - sizes[members] / 2).min()), *bends])
    right = max([float((x + sizes[members] / 2).max()), *bends])
    moved = {
        (int(members[i]), int(members[j])): tuple((px - left, py) for px, py in route)
        for (i, j), route in routes.items()
    }
    return _Block(members, np.column_stack([x - left, y]), moved, right - left, float(y.max()))


def _pack(
    blocks: list[_Block],
    x: Array,
    y: Array,
    routes: dict[tuple[int, int], tuple[Point, ...]],
    layer_height: float,
    aspect: float,
) -> float:
    """Put the parts onto shelves, filling ``x``, ``y`` and ``routes``; return where the next shelf would begin."""
    area = sum((block.width + _PART_GAP) * (block.height + layer_height) for block in blocks)
    limit = max([math.sqrt(aspect * area), *(block.width for block in blocks)])
    top = 0.0
    waiting = list(blocks)
    while waiting:
        cursor, height, later = 0.0, 0.0, []
        for block in waiting:
            if cursor and cursor + block.width > limit:
                later.append(block)
                continue
            x[block.members] = block.positions[:, 0] + cursor
            y[block.members] = block.positions[:, 1] + top
            for edge, route in block.routes.items():
                routes[edge] = tuple((px + cursor, py + top) for px, py in route)
            cursor += block.width + _PART_GAP
            height = max(height, block.height)
        top += height + layer_height
        waiting = later
    return top


def _layers(matrix: Adjacency, connected: NDArray[np.bool_], capacity: int) -> dict[int, int]:
    """Layer of each connected variable: below its causes, at most ``capacity`` in one, near its effects."""
    order = [v for v in topological_order(matrix) if connected[v]]
    to_sink: dict[int, int] = {}
    for v in reversed(order):
        to_sink[v] = 1 + max((to_sink[int(w)] for w in np.flatnonzero(matrix[v])), default=0)
    layer: dict[int, int] = {}
    count: dict[int, int] = {}
    # list scheduling: whatever heads the longest remaining chain goes first
    waiting = set(order)
    while waiting:
        ready = [v for v in waiting if all(int(p) in layer for p in np.flatnonzero(matrix[:, v]))]
        v = min(ready, key=lambda v: (-to_sink[v], v))
        waiting.discard(v)
        at = max((layer[int(p)] + 1 for p in np.flatnonzero(matrix[:, v])), default=0)
        while count.get(at, 0) >= capacity:
            at += 1
        layer[v] = at
        count[at] = count.get(at, 0) + 1
    # a cause of few things moves down to them, which shortens its edges
    for v in reversed(order):
        effects = np.flatnonzero(matrix[v])
        if len(effects) <= matrix[:, v].sum():
            continue
        lowest = min(layer[int(w)] for w in effects) - 1
        for at in range(lowest, layer[v], -1):
            if count.get(at, 0) < capacity:
                count[layer[v]] -= 1
                count[at] = count.get(at, 0) + 1
                layer[v] = at
                break
    used = {old: new for new, old in enumerate(sorted(set(layer.values())))}
    return {v: used[at] for v, at in layer.items()}


def _place(
    matrix: Adjacency, layer: dict[int, int], sizes: Array, layer_height: float
) -> tuple[Array, Array, dict[tuple[int, int], tuple[Point, ...]]]:
    """Order and place the layers; return coordinates of the variables and the routes of the edges."""
    d = len(matrix)
    x, y = np.zeros(d), np.zeros(d)
    if not layer:
        return x, y, {}
    rows: list[list[int]] = [[] for _ in range(max(layer.values()) + 1)]
    width = {v: float(sizes[v]) for v in layer}
    for v in sorted(layer):
        rows[layer[v]].append(v)
    chains: dict[tuple[int, int], list[int]] = {}
    fresh = d
    for i, j in np.argwhere(matrix).tolist():
        chain = [i]
        for at in range(layer[i] + 1, layer[j]):
            rows[at].append(fresh)
            width[fresh] = 0.0
            chain.append(fresh)
            fresh += 1
        chains[i, j] = [*chain, j]
    above: dict[int, list[int]] = {v: [] for v in width}
    below: dict[int, list[int]] = {v: [] for v in width}
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    rows = _ordered(rows, above, below)
    place = _coordinates(rows, above, below, width, d)
    for v, at in layer.items():
        x[v], y[v] = place[v], at * layer_height
    row_of = {v: at for at, row in enumerate(rows) for v in row}
    routes = {edge: [(place[v], row_of[v] * layer_height) for v in chain] for edge, chain in chains.items()}
    _spread_ends(routes, sizes)
    return x, y, {edge: tuple(route) for edge, route in routes.items()}


def _spread_ends(routes: dict[tuple[int, int], list[Point]], sizes: Array) -> None:
    """Give the edges of a variable places side by side on its box, in the order of where they come from."""
    for end, inner in ((0, 1), (-1, -2)):
        groups: dict[int, list[tuple[int, int]]] = {}
        for edge in routes:
            groups.setdefault(edge[end], []).append(edge)
        for v, members in groups.items():
            members.sort(key=lambda edge: (routes[edge][inner][0], edge))
            step = min(_PORT_STEP, 0.6 * sizes[v] / len(members))
            for place, edge in enumerate(members):
                x, y = routes[edge][end]
                routes[edge][end] = (float(x + step * (place - (len(members) - 1) / 2)), y)


def _ordered(
    rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]
) -> list[list[int]]:
    """Sweep with barycentres, and keep the order with the fewest crossings."""
    rows = [list(row) for row in rows]
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        neighbours = above if down else below
        for at in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            rank = {v: r for r, v in enumerate(rows[at - 1] if down else rows[at + 1])}
            own = {v: r for r, v in enumerate(rows[at])}
            centre = {
                v: (sum(rank[w] for w in neighbours[v]) / len(neighbours[v]) if neighbours[v] else own[v])
                for v in rows[at]
            }
            # ties alternate between keeping and reversing the order, so that sweeps do not stall
            sign = 1 if (sweep // 2) % 2 == 0 else -1
            rows[at].sort(key=lambda v: (centre[v], sign * own[v]))
        found = _crossings(rows, below)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def _crossings(rows: list[list[int]], below: dict[int, list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        rank = {v: r for r, v in enumerate(lower)}
        ends = np.array(sorted((r, rank[w]) for r, v in enumerate(upper) for w in below[v]), dtype=np.int64)
        if len(ends) > 1:
            crossed = (ends[:, None, 0] < ends[None, :, 0]) & (ends[:, None, 1] > ends[None, :, 1])
            total += int(crossed.sum())
    return total


def _coordinates(
    rows: list[list[int]],
    above: dict[int, list[int]],
    below: dict[int, list[int]],
    width: dict[int, float],
    n_real: int,
) -> dict[int, float]:
    """Horizontal places: near the neighbours, in order, without overlap."""
    place: dict[int, float] = {}
    offsets = []
    for row in rows:
        steps = [
            (width[a] + width[b]) / 2 + (_GAP if a < n_real and b < n_real else _BEND_GAP)
            for a, b in pairwise(row)
        ]
        offset = np.concatenate([[0.0], np.cumsum(steps)])
        offsets.append(offset)
        for v, at in zip(row, offset - offset[-1] / 2, strict=True):
            place[v] = float(at)
    for sweep in range(_SWEEPS):
        neighbours_of = (above, below, None)[sweep % 3]
        for at in range(len(rows)) if sweep % 3 != 1 else range(len(rows) - 1, -1, -1):
            row = rows[at]
            wish, weight = [], []
            for v in row:
                near = above[v] + below[v] if neighbours_of is None else neighbours_of[v]
                wish.append(sum(place[w] for w in near) / len(near) if near else place[v])
                weight.append((1.0 if v < n_real else 3.0) if near else 0.05)
            moved = offsets[at] + isotonic_regression(
                np.asarray(wish) - offsets[at], sample_weight=np.asarray(weight)
            )
            place.update(zip(row, moved.tolist(), strict=True))
    return place


def _place_isolated(
    isolated: NDArray[np.intp],
    sizes: Array,
    x: Array,
    y: Array,
    top: float,
    capacity: int,
    layer_height: float,
) -> None:
    """Put variables without edges into centred rows under the graph."""
    busy = np.setdiff1d(np.arange(len(x)), isolated)
    centre = float((x[busy].min() + x[busy].max()) / 2) if len(busy) else 0.0
    for line, start in enumerate(range(0, len(isolated), capacity)):
        members = isolated[start : start + capacity]
        total = float(sizes[members].sum()) + _GAP * (len(members) - 1)
        cursor = centre - total / 2
        for v in members:
            x[v] = cursor + sizes[v] / 2
            y[v] = top + line * layer_height * 0.6
            cursor += sizes[v] + _GAP

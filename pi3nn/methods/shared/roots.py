"""Step 2 and step 4 of PI3NN: the shift `nu` and the scales `alpha` and `beta`.

Everything works on residuals, for all members at once: `(M, N)` is members, training rows.
With ``base = f + nu`` the upper side is ``residual = y - base`` with width `u`, and the lower
side is the same problem with ``residual = base - y`` and width `l`. A row lies outside its bound
``base + scale * width`` when ``residual > scale * width``.

Only the number of rows outside is asked for, so every value between two neighbouring ratios
``residual / width`` is a root. `exact_scale` finds that gap by sorting and returns its middle;
`bisect_scale` walks there as the paper does. They agree on the rows outside, not on the value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
CountRule: TypeAlias = Literal["ceil", "floor"]

# Rounding errors, in units of eps, that a bound, a residual and their ratio can gather between
# them (at most 2), doubled for safety. Rows closer than this can't be told apart.
_ROUNDING = 4.0
# No row may be outside: the bound passes this far (relatively) above the outermost row.
_CLEARANCE = 1e-6


def outside_count(n_rows: int, gamma: float, rule: CountRule = "ceil") -> int:
    """Return how many of `n_rows` training rows belong beyond each bound at level `gamma`.

    Parameters
    ----------
    n_rows
        All training rows, N.
    gamma
        Confidence level, strictly between 0 and 1.
    rule
        ``"ceil"``: the paper's ``ceil(N (1 - gamma) / 2)``, with `gamma` read as the decimal
        number it is written as, so that 5000 rows at 0.9 give 250.
        ``"floor"``: the released code's ``int(N * (1 - gamma) / 2)`` in double precision,
        which gives 249 there, since ``1 - 0.9`` is a little less than 0.1.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"a level must lie strictly between 0 and 1, got {gamma}")
    if rule == "ceil":
        return math.ceil(n_rows * (1 - Fraction(repr(float(gamma)))) / 2)
    if rule == "floor":
        return int(n_rows * (1 - float(gamma)) / 2)
    raise ValueError(f"rule must be 'ceil' or 'floor', got {rule!r}")


def floored(width: FloatArray, floor: FloatArray) -> FloatArray:
    """Return `width (M, N)` raised to at least `floor (M,)`, and always above zero.

    The bounds have to be drawn with the same floored widths that the scales were solved with,
    or rows of width 0 lie outside at every scale.
    """
    lowest = np.maximum(floor, np.finfo(width.dtype).tiny).astype(width.dtype)
    return np.maximum(width, lowest[:, None])


def median_shift(residual: FloatArray) -> FloatArray:
    """Return the shift `nu (M,)` that puts half of the rows above ``f + nu``.

    Parameters
    ----------
    residual
        ``y - f``, `(M, N)`.

    Returns
    -------
    nu
        The middle of the gap with ``ceil(N / 2)`` rows above it and ``floor(N / 2)`` below: no row
        lies on the line, so ``>`` and ``>=`` select the same D_upper. Where ties close that gap,
        the nearest open one (of two equally near, the one with more rows above). Where all rows
        are equal there is none: `nu` is their value, and ``residual >= nu`` puts all in D_upper.
        NaN for a member with a residual that is not finite.
    """
    n_rows = residual.shape[1]
    ordered = np.sort(residual, axis=1)
    nu = ordered[:, (n_rows - 1) // 2].copy()
    if n_rows > 1:
        below, above = ordered[:, :-1], ordered[:, 1:]
        with np.errstate(invalid="ignore"):
            gap = above - below
        rounding = _ROUNDING * np.finfo(residual.dtype).eps
        is_open = gap > rounding * np.maximum(np.abs(below), np.abs(above))
        distance = np.abs(np.arange(n_rows - 1) - (n_rows // 2 - 1))
        best = np.where(is_open, distance, n_rows).argmin(axis=1)
        rows = np.arange(len(residual))
        nu = np.where(is_open[rows, best], below[rows, best] + gap[rows, best] / 2, nu)
    nu[~np.isfinite(residual).all(axis=1)] = np.nan
    return nu


def exact_scale(
    residual: FloatArray,
    width: FloatArray,
    counts: Sequence[int] | IntArray,
    floor: FloatArray,
    y: FloatArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """Return the scales (`alpha`, or `beta`) that leave the wanted numbers of rows outside.

    Parameters
    ----------
    residual
        Distance beyond ``f + nu`` on this side, `(M, N)`: ``y - f - nu`` for the upper bound, its
        negative for the lower one. Rows with ``residual <= 0`` are not on this side.
    width
        `u` or `l` on the same rows, `(M, N)`, not negative.
    counts
        Wanted rows outside for each of K levels, in any order; see `outside_count`.
    floor
        Smallest width, `(M,)`; draw the bounds with ``floored(width, floor)``.
    y
        The targets, `(M, N)` or anything that broadcasts to it. Given these, the count holds not
        only for ``residual > scale * width`` but also for ``y > f + nu + scale * width`` in the
        dtype of the arrays, where the sum rounds away what is small beside `y`.

    Returns
    -------
    scale
        `(M, K)`, the middle of the gap between the last row outside and the first one inside.
        For a count of 0, one millionth above the largest ratio. Where the side has fewer rows than
        wanted, 0. A larger count never has a larger scale, and scales that leave different
        numbers of rows outside are strictly ordered, so bounds can't cross (Theorem 1).
        NaN for a member with a value that is not finite.
    reached
        `(M, K)`, the rows that do lie outside. It differs from the count where rows are tied (the
        nearest reachable number from above) and where the side is too small (all its rows).
    """
    wanted = np.asarray(counts, dtype=np.intp)
    if (wanted < 0).any():
        raise ValueError(f"counts must not be negative, got {wanted.min()}")
    n_rows = residual.shape[1]
    near, far = _ratio_ranges(residual, floored(width, floor), y)

    # Gap k has k rows outside: row k (counted from the outermost) above it, row k + 1 below it.
    # A scale is safe there if it misses the ranges of all rows. Sorting both ends of the ranges
    # separately is enough: k rows begin above the scale, N - k rows end below it, none does both.
    top = np.pad(near, ((0, 0), (1, 0)), constant_values=np.inf)
    bottom = np.pad(far, ((0, 0), (0, 1)))
    is_open = bottom < top
    gaps = np.where(is_open, np.arange(n_rows + 1), n_rows + 1)
    next_open = np.minimum.accumulate(gaps[:, ::-1], axis=1)[:, ::-1]
    gap = np.where(wanted > n_rows, n_rows + 1, next_open[:, np.minimum(wanted, n_rows)])

    has_gap = gap <= n_rows
    top = np.take_along_axis(top, np.minimum(gap, n_rows), axis=1)
    bottom = np.take_along_axis(bottom, np.minimum(gap, n_rows), axis=1)
    with np.errstate(invalid="ignore"):
        middle = bottom + (top - bottom) / 2
    scale = np.where(np.isinf(top), bottom * (1 + _CLEARANCE), middle) * has_gap
    reached = np.where(has_gap, gap, (residual > 0).sum(axis=1)[:, None])

    failed = ~(np.isfinite(residual) & np.isfinite(width)).all(axis=1)
    scale[failed], reached[failed] = np.nan, 0
    return scale.astype(near.dtype, copy=False), reached


def counted_scale(
    residual: FloatArray,
    width: FloatArray,
    levels: Sequence[float],
    weights: FloatArray | None = None,
) -> NDArray[np.float64]:
    """Return the scales ``(M, K)`` that out-of-fold residuals ask for on one side.

    The k-th smallest of the ratios ``residual / width (M, N)``, ``k = ceil((N + 1) (1 + gamma) / 2)``: a
    new row that is like the others lies beyond it with probability ``(1 - gamma) / 2`` at most. Never
    negative, so that bounds can't cross. Where k is more than N, the largest ratio; `rows_for`
    says how many rows a level needs.

    With ``weights (M, N)`` rows count by their weight.
    """
    ratio = residual / width
    order = np.argsort(ratio, axis=1)
    ordered = np.take_along_axis(ratio, order, axis=1)
    n_rows = ratio.shape[1]
    if weights is None:
        places = [_rank(n_rows, gamma) - 1 for gamma in levels]
        scale = ordered[:, np.minimum(places, n_rows - 1)]
    else:
        ordered_weights = np.take_along_axis(weights, order, axis=1)
        passed = np.cumsum(ordered_weights / weights.mean(axis=1, keepdims=True), axis=1)
        wanted = np.array([_rank(n_rows, gamma) for gamma in levels]) - 1e-9
        columns = (passed[:, :, None] < wanted).sum(axis=1)
        scale = np.take_along_axis(ordered, np.minimum(columns, n_rows - 1), axis=1)
    return np.asarray(np.maximum(scale, 0), dtype=np.float64)


def rows_for(gamma: float) -> int:
    """Return the fewest rows with which `counted_scale` reaches level `gamma`."""
    level = Fraction(repr(float(gamma)))
    return math.ceil((1 + level) / (1 - level))


def _rank(n_rows: int, gamma: float) -> int:
    return math.ceil((n_rows + 1) * (1 + Fraction(repr(float(gamma)))) / 2)


def _ratio_ranges(
    residual: FloatArray, width: FloatArray, y: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return the near and far ends, both sorted downwards, of the scales a row can't be told at.

    Below its near end a row is surely outside, above its far end surely inside. Rows that are
    not on this side are inside at every scale: both ends 0 or less.
    """
    # A width next to zero may push a ratio to infinity: a row that no scale gets inside.
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.maximum(residual, 0) / width
        blur = ratio if y is None else ratio + np.abs(y) / width
        blur = _ROUNDING * np.finfo(ratio.dtype).eps * blur
        far = np.where(residual > 0, ratio + blur, 0)
        near = np.where(np.isinf(far), np.inf, ratio - blur)
    near.sort(axis=1)
    far.sort(axis=1)
    return near[:, ::-1], far[:, ::-1]


def bisect_scale(
    residual: FloatArray,
    width: FloatArray,
    counts: Sequence[int] | IntArray,
    high: float,
    inclusive: bool = False,
    max_halvings: int = 1001,
) -> tuple[FloatArray, IntArray]:
    """Return the scales as the paper finds them: by bisection on ``[0, high]``.

    Parameters
    ----------
    residual, width
        As in `exact_scale`, `(M, N)`; the widths are taken as they are.
    counts
        Wanted rows outside for each of K levels.
    high
        Upper end of the search (released code: 1e5; 200 in the 10D example).
    inclusive
        Count rows with ``residual >= scale * width``, as the released code does, instead of ``>``.
    max_halvings
        A midpoint with exactly the wanted count ends the search; else the last one is taken.

    Returns
    -------
    scale, reached
        `(M, K)` each: the midpoint, and the rows outside there.
    """
    beyond = operator.ge if inclusive else operator.gt
    results = [_bisect(residual, width, count, high, beyond, max_halvings) for count in counts]
    return np.stack([scale for scale, _ in results], 1), np.stack([n for _, n in results], 1)


def _bisect(
    residual: FloatArray,
    width: FloatArray,
    wanted: int,
    highest: float,
    beyond: Callable[[FloatArray, FloatArray], NDArray[np.bool_]],
    max_halvings: int,
) -> tuple[FloatArray, IntArray]:
    """Halve ``[0, highest]`` until as many rows as `wanted` are `beyond`, for each member."""
    low = np.zeros(len(residual), dtype=np.result_type(residual, width))
    high, middle = np.full_like(low, highest), low.copy()
    reached = np.zeros(len(low), dtype=np.intp)
    active = np.arange(len(low))
    for _ in range(max_halvings):
        middle[active] = low[active] / 2 + high[active] / 2
        is_outside = beyond(residual[active], middle[active, None] * width[active])
        reached[active] = np.count_nonzero(is_outside, axis=1)
        too_many = reached > wanted
        # Once the midpoint is an end that stays, every further halving gives it again.
        moves = np.where(too_many, middle != low, middle != high)
        low[active] = np.where(too_many, middle, low)[active]
        high[active] = np.where(too_many, high, middle)[active]
        active = active[((reached != wanted) & moves)[active]]
        if not active.size:
            break
    return middle, reached

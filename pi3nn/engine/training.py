"""The one training loop: any loss, for a stack of members of one shape.

A member's numbers are the same, to the last bit, whatever it shares a stack with: it has its own
random streams, its rows are padded by a rule that looks at itself alone, and a lone member is
trained as two copies (see `pi3nn.engine.nets`). Hence members that have finished, stopped or failed are
taken out of the computation at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.later import torch
from pi3nn.engine.loop import LastInput, Loop, Outcome
from pi3nn.engine.losses import Loss
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape, padded
from pi3nn.engine.threads import keep_freed_memory, one_thread

if TYPE_CHECKING:
    from torch import Tensor

PROGRESS_SECONDS = 0.3
"""Time between two calls of `on_progress`."""

CACHE_BYTES = 5 << 20
"""What `stack_width` aims at. On a core with 2 MB of second-level and ample third-level cache, the
best widths at rows x hidden = 100 x 50, 100 x 200, 455 x 200, 7372 x 200 are 64 to 128, 16 to 64,
4 to 16 and 2 in PyTorch; this gives 70, 19, 6 and 2. With the native engine it gives 204, 74, 34
and 3: wide enough to share the cost of Python, narrow enough for the tensors of a loss."""

LONG_STEP = 3 * 10**8
"""Operations (some 5 ms) of a step beside which the cost of Python is nothing. A stack that takes
longer only makes its members wait for each other, and more is lost when it is killed."""

Part = TypeVar("Part")
Result = TypeVar("Result")

OnProgress = Callable[[float, float], None]
"""Called with the share of steps done and the mean loss."""


def train(
    net: StackedMLP,
    rows: TrainingRows,
    loss: Loss,
    recipe: Recipe,
    generators: Sequence[torch.Generator],
    *,
    last_input: LastInput | None = None,
    uniforms: int = 0,
    state: Mapping[str, Tensor] | None = None,
    on_progress: OnProgress | None = None,
) -> Outcome:
    """Train every member of a stack, in place.

    Parameters
    ----------
    net : StackedMLP
        M members, initialised.
    generators : sequence of M torch.Generator
        One per member. Exactly one number is taken from each; the streams of batches, dropout masks
        and uniform numbers are derived from it.
    last_input : callable, optional
        Called at each step for one more input, the last; may use `info.uniform`.
    uniforms : int
        Columns of `info.uniform`.
    state : mapping, optional
        Initial `Info.state`.

    Notes
    -----
    A member whose loss, gradient or update is not finite is frozen with the weights from before
    that update. At the end of its steps a member that was watched gets its best weights.
    """
    _check(net, rows, generators)
    keep_freed_memory()
    with one_thread():
        roots = [int(torch.randint(2**63 - 1, (1,), generator=g)) for g in generators]
        run = Loop(net, rows, loss, recipe, roots, last_input, uniforms, state or {})
        shown = time.monotonic()
        while run.running:
            run.advance()
            late = time.monotonic() - shown > PROGRESS_SECONDS
            if on_progress and late and run.running:  # at the end nobody has a last loss
                on_progress(run.done(), run.mean_loss())
                shown = time.monotonic()
    if on_progress:
        on_progress(1.0, float(run.outcome.loss.nanmean()))
    return run.outcome


def in_threads(
    training: Callable[[Part, OnProgress | None], Result],
    parts: Sequence[Part],
    on_progress: OnProgress | None,
) -> list[Result]:
    """What `training` makes of every part, each on a thread of its own, the first on this one.

    The kernel and PyTorch let other threads work while they compute. All parts are about as large, so
    the progress of the first is that of all; when it is ended by an error, as Ctrl-C is one, so are
    the others.
    """
    if len(parts) == 1:
        return [training(parts[0], on_progress)]
    ended = threading.Event()

    def watch(share: float, loss: float) -> None:
        if ended.is_set():
            raise _EndedError

    with ThreadPoolExecutor(len(parts) - 1) as pool:
        others = [pool.submit(training, part, watch) for part in parts[1:]]
        try:
            first = training(parts[0], on_progress)
            return [first, *(other.result() for other in others)]
        except BaseException:
            ended.set()
            raise


class _EndedError(Exception):
    """Another thread has failed."""


def _check(net: StackedMLP, rows: TrainingRows, generators: Sequence[torch.Generator]) -> None:
    counts = {"generators": len(generators), "row sets": rows.members}
    for what, count in counts.items():
        if count != net.members:
            raise ValueError(f"{count} {what} for {net.members} members")
    if {rows.x.dtype, rows.y.dtype} != {net.flat.dtype}:
        raise ValueError(f"rows of {rows.x.dtype}, {rows.y.dtype} for a {net.flat.dtype} network")


def stack_width(shape: Shape, rows: int, engine: str) -> int:
    """How many members to train in one stack, a matter of speed only.

    As many as keep one step of `rows` rows within the cache: parameters with their moments, and the
    activations in PyTorch; with the native engine, which has none, what a loss in PyTorch makes.
    Fewer where that is a `LONG_STEP`. At least 2, since a lone member may have to be trained as two.
    `engine` is the one that computes, see `pi3nn.engine.native.engine_for`.
    """
    if engine not in ("native", "torch"):
        raise ValueError(f"the engine is native or torch, not {engine!r}")
    of_loss, of_net = 20, shape.inputs + 2 * shape.hidden * shape.layers + 2 * shape.outputs
    numbers = padded(rows) * (of_loss if engine == "native" else of_net) + 5 * shape.columns
    short = LONG_STEP // (6 * padded(rows) * shape.columns)
    return max(2, min(CACHE_BYTES // (4 * numbers), short))

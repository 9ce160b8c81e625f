"""How far a run is: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from tqdm import tqdm

_LINE_EVERY = 30.0  # seconds between lines when there is no terminal


class ProgressBar:
    """Counts members over all stacks; a stack half done counts for half of its members.

    `stored` members were there before.
    """

    def __init__(self, sizes: list[int], stored: int = 0, quiet: bool = False) -> None:
        self._sizes, self._stored, self._quiet = sizes, stored, quiet
        self._share = [0.0] * len(sizes)
        self._bar: tqdm[Any] | None = None
        if sys.stderr.isatty() and not quiet:
            style = "{l_bar}{bar}| {n:.0f}/{total} members [{elapsed}<{remaining}{postfix}]"
            total = stored + sum(sizes)
            self._bar = tqdm(
                desc="training", total=total, initial=stored, bar_format=style, leave=False
            )
        self._started = self._last_line = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, stack: int, share: float, loss: float) -> None:
        """Stack number `stack` has done `share` of its work and its mean loss is `loss`."""
        self._share[stack] = share
        done = sum(s * n for s, n in zip(self._share, self._sizes, strict=True))
        shown = "" if math.isnan(loss) else f"loss {loss:.4f}"
        if self._bar is not None:
            self._bar.set_postfix_str(shown, refresh=False)
            self._bar.update(self._stored + done - self._bar.n)
        elif not self._quiet and time.monotonic() - self._last_line > _LINE_EVERY:
            self._last_line = time.monotonic()
            total = sum(self._sizes)
            seconds = (time.monotonic() - self._started) * (total - done) / max(done, 1e-9)
            members = f"{self._stored + done:.0f} of {self._stored + total} members"
            parts = [members, shown, f"{seconds:.0f} s left"]
            print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)

"""What a search looks through: Hydra's grammar of sweeps as Optuna's distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep
from omegaconf import DictConfig
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import Trial

from pi3nn.errors import UserError

_GROUPS = ("experiment", "dataset", "method", "protocol")
_MOST_POINTS = 100_000  # of a range, and of a grid: all are in memory


@dataclass(frozen=True)
class Space:
    """The keys that a search varies, and what is the same in all its trials."""

    fixed: list[str]  # overrides, as they were typed
    keys: dict[str, BaseDistribution] = field(default_factory=dict)

    @classmethod
    def of(cls, overrides: Sequence[Override]) -> Space:
        """That of parsed overrides; where a key is there twice, the later one counts.

        Raises
        ------
        UserError
            If a space can't be searched.
        """
        latest = {str(override.get_key_element()): override for override in overrides}
        swept = {key: o for key, o in latest.items() if o.is_sweep_override()}
        fixed = [str(o.input_line) for key, o in latest.items() if key not in swept]
        return cls(fixed, {key: _distribution(o) for key, o in swept.items()})

    def with_grid(self, grid: DictConfig) -> Space:
        """With the keys of an experiment's own grid, whose values are choices.

        Raises
        ------
        UserError
            If it is not the same grid for all trials.
        """
        if not grid:
            return self
        if chosen := [key for key in self.keys if key in _GROUPS]:
            raise UserError(
                f"{chosen[0]}= is searched, and the experiment's own grid ({', '.join(grid)}) may be "
                "another for each: give each of its keys a value or a space"
            )
        choices = {str(key): [str(value) for value in values] for key, values in grid.items()}
        return Space(
            self.fixed,
            self.keys | {key: CategoricalDistribution(texts) for key, texts in choices.items()},
        )

    @property
    def first(self) -> dict[str, Any]:
        """A point of it: the first of each choice, the low end of numbers."""
        return {
            key: d.choices[0] if isinstance(d, CategoricalDistribution) else _ends(d)[0]
            for key, d in self.keys.items()
        }

    @property
    def points(self) -> float:
        """How many points it has."""
        return math.prod(_count(distribution) for distribution in self.keys.values())

    def values(self) -> dict[str, list[Any]]:
        """Of each key all its values.

        Raises
        ------
        UserError
            If there is no end of them, or all points together are too many to list.
        """
        for key, distribution in self.keys.items():
            if math.isinf(_count(distribution)):
                raise UserError(f"{key} is an interval, which has no grid: write {key}=range(…)")
        if self.points > _MOST_POINTS:
            raise UserError(
                f"{', '.join(self.keys)} have more than {_MOST_POINTS:,} points together, and this "
                "sampler tries every one: give fewer, or another hydra.sweeper.sampler"
            )
        return {key: _values(distribution) for key, distribution in self.keys.items()}

    def suggest(self, trial: Trial) -> None:
        """Have each key of a trial suggested that has no value yet."""
        for key, d in self.keys.items():
            if isinstance(d, CategoricalDistribution):
                trial.suggest_categorical(key, d.choices)
            elif isinstance(d, IntDistribution):
                trial.suggest_int(key, d.low, d.high, step=d.step, log=d.log)
            elif isinstance(d, FloatDistribution):
                trial.suggest_float(key, d.low, d.high, step=d.step, log=d.log)

    def overrides(self, point: Mapping[str, Any]) -> list[str]:
        """What to type for a point; floats have all their digits, so that members are found again."""
        return [*self.fixed, *(f"{key}={point[key]}" for key in self.keys)]

    def described(self) -> dict[str, str]:
        """The keys and their spaces as text, by which two spaces are told apart."""
        return {key: str(distribution) for key, distribution in sorted(self.keys.items())}


def _distribution(override: Override) -> BaseDistribution:
    sweep: Any = override._value
    text, tags = override.input_line, set[str](getattr(sweep, "tags", ()))
    if unknown := tags - {"log"}:
        raise UserError(f"'{text}': a search knows the tag log only, not {min(unknown)}")
    try:
        if isinstance(sweep, IntervalSweep):
            return _between(sweep.start, sweep.end, bool(tags))
        if isinstance(sweep, RangeSweep):
            values = _listed(sweep)
            return _numbers(min(values), max(values), abs(sweep.step), bool(tags))
    except (ValueError, ArithmeticError) as error:
        raise UserError(f"'{text}' can't be searched: {error}") from error
    if tags:
        raise UserError(f"'{text}': choices have no logarithm; leave tag(log, …) out")
    return CategoricalDistribution(list(dict.fromkeys(override.sweep_string_iterator())))


def _between(low: Any, high: Any, log: bool) -> BaseDistribution:
    if not math.isfinite(high - low):
        raise ValueError("its ends, and what is between them, must be finite")
    return _numbers(low, high, None, log)


def _listed(sweep: Any) -> list[Any]:
    """The values of a range, counted before they are made."""
    start, stop, step = sweep.start, sweep.stop, sweep.step
    if not step or not all(map(math.isfinite, (start, stop, step))):
        raise ValueError("its ends must be finite, and its step too, and not 0")
    if (stop - start) / step > _MOST_POINTS:
        raise ValueError(
            f"it has more than {_MOST_POINTS:,} points: take a larger step, or interval(…)"
        )
    if not (values := list(sweep.range())):
        raise ValueError("it is empty")
    return values


def _numbers(low: Any, high: Any, step: Any, log: bool) -> BaseDistribution:
    """Whole ones, if both ends are."""
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log, step or 1)
    return FloatDistribution(low, high, log, step)


def _ends(distribution: BaseDistribution) -> tuple[float, float]:
    assert isinstance(distribution, (IntDistribution, FloatDistribution))
    return distribution.low, distribution.high


def _count(distribution: BaseDistribution) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    (low, high), step = _ends(distribution), getattr(distribution, "step", None)
    if low == high:
        return 1
    return round((high - low) / step) + 1 if step else math.inf


def _values(distribution: BaseDistribution) -> list[Any]:
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    (low, _), step = _ends(distribution), getattr(distribution, "step", None) or 1
    return [low + number * step for number in range(int(_count(distribution)))]

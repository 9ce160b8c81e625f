"""Keys that only some choices of a sweep have, said so that Hydra leaves them to its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from pi3nn import config


def left_to_jobs(overrides: Sequence[str]) -> list[str]:
    """Make ``method.lambda_in=15`` beside ``method=qd,piven`` a sweep over one value.

    Before the jobs Hydra composes once with the default method or data set in the place of those that
    are swept, and would refuse a key that the default lacks. What is swept it leaves to the jobs.
    """
    swept = {override.key_or_group for text in overrides if (override := config.parsed(text))
             and override.is_sweep_override()} & {*config.GROUPS}  # fmt: skip
    if not swept:
        return list(overrides)
    same = [text for text in overrides if text.partition("=")[0] not in swept]
    at_first = config.chosen_names(same)
    return [_as_sweep(text) if _lacks(text, at_first, swept) else text for text in overrides]


def _lacks(text: str, at_first: dict[str, str], swept: set[str]) -> bool:
    """Whether what is chosen before the jobs has no such key, and another choice has."""
    key = text.lstrip("+").partition("=")[0]
    group, _, name = key.partition(".")
    if group == "encoder" and name:  # null, but for some data sets
        return bool(swept & {"dataset", "experiment"})
    if group not in at_first or not swept & {group, "experiment"}:
        return False
    return not config.has(group, at_first[group], name) and bool(config.owners(key))


def _as_sweep(text: str) -> str:
    key, _, value = text.partition("=")
    override, single = config.parsed(text), f"{key}=choice({value})"
    is_one = override is not None and not override.is_sweep_override()
    return single if value and is_one and config.parsed(single) else text

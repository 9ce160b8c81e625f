"""Overrides that Hydra could not explain, refused before it sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, RangeSweep

from pi3nn import config, paths
from pi3nn.errors import UserError


def check(overrides: Sequence[str]) -> None:
    """Refuse a key that is taken away, an interval, a choice without a name, a list that is none and
    a folder that there is not.

    Raises
    ------
    UserError
        With what was typed, and what to type instead.
    """
    for refuse in (
        _taken_away,
        _swept_hydra,
        *_by_sweeper(overrides),
        _no_name,
        _no_list,
        _no_folder,
    ):
        if sentence := next(filter(None, map(refuse, overrides)), None):
            raise UserError(sentence)


def is_group(key: str) -> bool:
    """Whether ``key=`` chooses a YAML."""
    return bool(key) and (paths.configs() / key).is_dir()


def _taken_away(text: str) -> str | None:
    key = text.removeprefix("~").partition("=")[0]
    if key == text.partition("=")[0] or key.startswith("hydra"):
        return None
    return f"'{text}' would take away what every run has: leave it out, or set {key}=... instead"


def _swept_hydra(text: str) -> str | None:
    """Of several values for a key of Hydra's, of which a command has one."""
    override = config.parsed(text) if text.lstrip("+").startswith("hydra") else None
    if override is None or not override.is_sweep_override():
        return None
    return f"'{text}': what is Hydra's own has one value in a command: give one, and run it once for each"


def _by_sweeper(overrides: Sequence[str]) -> list[Callable[[str], str | None]]:
    """Those that run what is written out refuse an interval; others, of plugins, search in it."""
    typed = [text for text in overrides if text.startswith("hydra/sweeper=")]
    chosen = [name for text in typed for name in config.named_by(text)] or ["stacked"]
    return [_no_values] if chosen[-1] in config.RUN_ALL else []


def _no_values(text: str) -> str | None:
    """Of an interval."""
    override = config.parsed(text)
    if override is None or not isinstance(override._value, IntervalSweep):
        return None
    key = text.partition("=")[0]
    return (
        f"'{text}': an interval has no values to run: write them out, as in {key}=1,2 with -m, or choose "
        "a sweeper that searches in it (hydra/sweeper=search)"
    )


def _no_name(text: str) -> str | None:
    """Of a choice that is null, a number or a list: choices have names."""
    override = config.parsed(text)
    key = text.lstrip("+").partition("=")[0].partition("@")[0]
    if override is None or not ("/" in key or is_group(key)):
        return None
    value = override._value  # unlike value(), it keeps several apart from one
    several = value.list if isinstance(value, ChoiceSweep) else [value]
    if isinstance(value, dict) or all(_is_name(each) for each in several):
        return None  # of a mapping, `config.check_chosen` says how to write it
    choices = config.names(key)
    which = f", one of {', '.join(choices)}" if choices else ": --hydra-help lists what there is"
    return f"'{text}': {key}= takes a name{which}"


def _is_name(value: object) -> bool:
    others = (int, float, list, dict, RangeSweep, IntervalSweep)
    return not isinstance(value, others) and value is not None and value != ""


def _no_list(text: str) -> str | None:
    """Of a mapping, nothing or a pattern where a list of numbers stands."""
    key, equals, value = text.lstrip("+").partition("=")
    if key not in config.LISTS or not equals:
        return None
    searched = isinstance(getattr(config.parsed(text), "_value", None), IntervalSweep)
    if searched or value.startswith(("{", "glob(")) or value in ("", "null"):
        return f"'{text}': {key}= takes a list of numbers, as in {key}=[{config.EXAMPLE[key]}]"
    return None


def _no_folder(text: str) -> str | None:
    """Of a place for YAMLs that there is not, which Hydra would pass over."""
    key, _, _ = text.lstrip("+").partition("=")
    override = config.parsed(text) if key == "hydra.searchpath" else None
    value = override.value() if override else None
    for place in map(str, value) if isinstance(value, list) else ():
        folder = place.removeprefix("file://")
        if "://" not in folder and not Path(folder).is_dir():
            return f"'{text}': there is no folder {folder}: name one that has YAMLs in it"
    return None

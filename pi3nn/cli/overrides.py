"""What people type, put right where it is clear and explained where it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config, paths
from pi3nn.errors import first_line, nearest


def as_hydra_wants(arguments: Sequence[str]) -> list[str]:
    """Say it as Hydra wants to hear it.

    ``seeds=3`` becomes a list, and so does each alternative of ``-m seeds=1,2``, since lists are
    typed; ``sweep={...}`` may name keys that are not swept yet; a run that is only planned or
    explained leaves no folder; a table of one's own is fitted, and named after its file.
    """
    config.use_folders(arguments)
    completed = [*map(_with_brackets, arguments), *_about_table(arguments)]
    if any(argument.lower() in _TRAIN_NOTHING for argument in arguments):
        completed += ["hydra.run.dir=.", "hydra.output_subdir=null"]
    return completed


# What OmegaConf takes for true.
_TRAIN_NOTHING = [
    f"{key}={true}" for key in ("plan", "explain") for true in ("true", "yes", "on", "1")
]


def _about_table(arguments: Sequence[str]) -> list[str]:
    """``experiment=fit`` and, where the data set is no YAML of the user's own, the name of the file
    without its endings, unless said otherwise."""
    values = dict(argument.partition("=")[::2] for argument in arguments)
    if config.schema_of("dataset", values.get("dataset", "")) != "table":
        return []
    added = [] if "experiment" in values else ["experiment=fit"]
    name = re.sub(r"\W+", "_", Path(values.get("dataset.path", "")).name.split(".")[0])
    if values["dataset"] == "table" and name and "dataset.name" not in values:
        added.append(f"dataset.name='{name}'")
    return added


def _with_brackets(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if key == "sweep":
        return f"++{argument}"
    if key not in config.LISTS or not equals or value.startswith("["):
        return argument
    try:
        override = OverridesParser.create().parse_override(argument)
    except HydraException:
        return argument  # Hydra will say what is wrong with it
    if override.is_sweep_override():
        return f"{key}=" + ",".join(f"[{choice}]" for choice in override.sweep_string_iterator())
    return f"{key}=[{value}]"


def explain(arguments: Sequence[str], error: Exception) -> str:
    """One sentence for a configuration that Hydra or OmegaConf refused."""
    if first_line(error).startswith("Ambiguous value"):
        return _several_values(arguments)
    several = next((a for a in arguments if re.fullmatch(r"dataset\.target=\[.*\]", a)), None)
    if several:
        return (
            f"{several}: a run has one target; run once for each, the others in dataset.ignore, or "
            "fit PI3NNRegressor, which takes several"
        )
    overrides = [text for text in arguments if "=" in text and not text.startswith("-")]
    for text in overrides:
        key, _, value = text.partition("=")
        sentence = _unreadable(text) or _unknown_choice(key, value) or _unknown_key(key, overrides)
        if sentence:
            return sentence
    # Words that belong to an option before them, as in ``--cfg job``.
    options = {word for option, word in pairwise(arguments) if option.startswith("-")}
    for text in arguments:
        if "=" not in text and not text.startswith(("-", "~")) and text not in options:
            return f"'{text}' is not of the form key=value{nearest(text, _keys(overrides))}"
    return _in_hydras_words(error)


def _several_values(arguments: Sequence[str]) -> str:
    """A comma without ``-m``: lists take brackets, several runs take ``-m``."""
    text = next(text for text in arguments if "," in text.partition("=")[2])
    key, _, value = text.partition("=")
    in_brackets = f"write {key}=[{value}] for one run with all of them, or "
    lists = in_brackets if key in config.LISTS else ""
    return f"{text} names several values: {lists}add -m for one run each"


def _unreadable(text: str) -> str | None:
    try:
        OverridesParser.create().parse_override(text)
    except HydraException:
        advice = "look for an open bracket or quote, and quote the whole of it"
        return f"'{text}' can't be read: {advice}"
    return None


def _unknown_choice(key: str, value: str) -> str | None:
    folder = paths.configs() / key.lstrip("+")
    if "." in key or not folder.is_dir():
        return None
    choices = config.names(key.lstrip("+"))
    for choice in value.split(","):
        if choice not in choices:
            similar = nearest(choice, choices)
            return f"there is no {key}={choice}{similar}; choices: {', '.join(choices)}"
    return None


def _unknown_key(key: str, overrides: Sequence[str]) -> str | None:
    key = key.lstrip("+~")
    if key.startswith("hydra") or (paths.configs() / key).is_dir():
        return None
    keys = _keys(overrides)
    if key in keys or key.startswith("sweep."):
        return None
    return f"there is no key '{key}'{nearest(key, keys)}; see them all with --cfg job"


def _base(overrides: Sequence[str]) -> DictConfig:
    """The configuration with only the choices of `overrides` made, the first of each sweep."""
    pairs = (text.partition("=")[::2] for text in overrides)
    chosen = [f"{key}={v.split(',')[0]}" for key, v in pairs if (paths.configs() / key).is_dir()]
    return config.composed(*chosen, *config.search_path())


def _keys(overrides: Sequence[str]) -> list[str]:
    """Every key that may be set beside `overrides`, with its dots, and every config group."""
    groups = [path.name for path in paths.configs().iterdir() if path.is_dir()]
    return [*groups, *_walk(_base(overrides))]


def _walk(cfg: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, cfg):
        yield f"{prefix}{key}"
        node = cfg._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_missing():
            yield from _walk(node, f"{prefix}{key}.")


def _in_hydras_words(error: Exception) -> str:
    """The message without its stack of frames; of a type error, with the key."""
    cause = error
    while isinstance(cause.__cause__, (OmegaConfBaseException, HydraException)):
        cause = cause.__cause__
    full_key = getattr(cause, "full_key", None)
    text = first_line(cause)
    return f"{full_key}: {text}" if full_key and str(full_key) not in text else text

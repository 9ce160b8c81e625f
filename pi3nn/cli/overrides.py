"""What people type, put right where it is clear and explained where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import BooleanNode, DictConfig
from omegaconf.errors import OmegaConfBaseException, ValidationError

from pi3nn import config, paths
from pi3nn.cli import hydra_choices, own_tables, refusals, swept
from pi3nn.cli import options as hydra_options
from pi3nn.errors import UserError, first_line, nearest

# Options of Hydra's that a word follows; behind the last two it may be left out.
_WORD_FOLLOWS = (
    "--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--config-name", "-cn",
    "--config-dir", "-cd", "--experimental-rerun", "--info", "-i"
)  # fmt: skip


def as_hydra_wants(arguments: Sequence[str]) -> list[str]:
    """Say it as Hydra wants to hear it.

    Overrides come before options, wherever they were typed; ``seeds=3`` becomes a list, and so does
    each alternative of ``-m seeds=1,2``, since lists are typed; ``sweep={...}`` may name keys that
    are not swept yet; a run that is only planned or explained leaves no folder; a table of one's own
    is fitted, and named after its file.

    Raises
    ------
    UserError
        If a key is taken away, a choice is no name, an option of Hydra's makes no sense, or a YAML of
        the user's own that is chosen has a mistake.
    """
    config.use_folders(arguments, only=True)
    typed, options = _apart(arguments)
    hydra_options.check(options, typed)
    if "--hydra-help" in options:
        return ["--hydra-help"]
    refusals.check(typed)
    config.check_chosen(typed)
    about_tables = own_tables.added(typed)
    config.say_added({text.partition("=")[0]: why for text, why in about_tables.items()})
    completed = swept.left_to_jobs([*map(_with_brackets, typed), *about_tables])
    if any(map(_trains_nothing, typed)):
        completed += ["hydra.run.dir=.", "hydra.output_subdir=null"]
    return completed + options


def _apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Overrides, and options with the words that belong to them."""
    overrides: list[str] = []
    options: list[str] = []
    for before, word in pairwise(["", *arguments]):
        belongs = before in _WORD_FOLLOWS and not (before in _WORD_FOLLOWS[-2:] and "=" in word)
        (options if belongs or word.startswith("-") else overrides).append(word)
    return overrides, options


def _trains_nothing(text: str) -> bool:
    """``plan=true`` or ``explain=true``, in all the ways that OmegaConf takes for true."""
    key, _, value = text.lstrip("+").partition("=")
    try:
        return key in ("plan", "explain") and bool(BooleanNode(value.strip("'\""))._value())
    except OmegaConfBaseException:
        return False


_COLUMNS = ("dataset.ignore", "dataset.categories")  # one column stands for a list of it


def typed_folders(arguments: Sequence[str]) -> list[str]:
    """Folders for the results that were typed, with those that they are in."""
    folders: list[str] = []
    for text in arguments:
        key, _, value = text.partition("=")
        if key in ("hydra.run.dir", "hydra.sweep.dir"):
            folder = Path(value.strip("'\""))
            folders += map(str, (folder, *folder.parents))
    return folders


def _with_brackets(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if key == "sweep":
        return f"++{argument}"
    if key not in (*config.LISTS, *_COLUMNS) or not equals or value.startswith("["):
        return argument
    override = config.parsed(argument)
    if override is None:
        return argument  # Hydra will say what is wrong with it
    if override.is_sweep_override():
        return f"{key}=" + ",".join(map(_in_brackets, override.sweep_string_iterator()))
    return f"{key}=[{value}]"


def _in_brackets(value: str) -> str:
    return value if value.startswith("[") else f"[{value}]"


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
    overrides, _ = _apart(arguments)
    try:
        config.check_chosen(overrides)
    except UserError as of_own_yaml:
        return str(of_own_yaml)
    first = [_unreadable, _unknown_choice, _swept_key]
    sentences = (say(text) for text in overrides for say in first)
    sentence = next(filter(None, sentences), None)
    of_value = isinstance(_cause(error), ValidationError)  # the key of which there is
    base = None if sentence or of_value else _base(overrides)
    if base is not None:
        sentence = _below_nothing(overrides, base) or _about_keys(overrides, base)
    sentence = sentence or _not_made_for_it(error) or _needs_another(overrides, error)
    # Choices that can be composed are not what is refused.
    choices = _choices(overrides) if of_value or base is not None else []
    return sentence or _in_hydras_words(overrides, choices, error)


def _cause(error: BaseException) -> BaseException:
    """The innermost error of Hydra's or OmegaConf's, which knows the most."""
    while isinstance(error.__cause__, (OmegaConfBaseException, HydraException)):
        error = error.__cause__
    return error


def _not_made_for_it(error: Exception) -> str | None:
    """For an experiment whose settings have a key that the data set chosen does not have."""
    found = re.search(
        r"In 'settings/experiment/\w+/\w+/(\w+)'.*full_key: (dataset\.\w+)", str(error), re.DOTALL
    )
    if found is None:
        return None
    return (
        f"experiment={found[1]} sets {found[2]}, which the data set chosen does not have: leave "
        "dataset= out, or choose one that the experiment is made for"
    )


def _several_values(arguments: Sequence[str]) -> str:
    """A comma without ``-m``: lists take brackets, several runs take ``-m``."""
    text = next(text for text in arguments if "," in text.partition("=")[2])
    key, _, value = text.partition("=")
    in_brackets = f"write {key}=[{value}] for one run with all of them, or "
    lists = in_brackets if key in config.LISTS else ""
    return f"{text} names several values: {lists}add -m for one run each"


def _unreadable(text: str) -> str | None:
    if "=" not in text or config.parsed(text) is not None:
        return None
    return f"'{text}' can't be read: look for an open bracket or quote, and quote the whole of it"


def _unknown_choice(text: str) -> str | None:
    key, equals, _ = text.lstrip("+").partition("=")
    if equals and key.startswith("hydra/"):
        return hydra_choices.unknown(text)
    if not equals or not refusals.is_group(key):
        return None
    choices = config.names(key)
    if not choices:  # our own settings, and Hydra's
        return f"'{text}': {key}= chooses nothing here: leave it out"
    for choice in config.named_by(text):
        if choice not in choices:
            similar = nearest(choice, choices)
            return f"there is no {key}={choice}{similar}; choices: {', '.join(choices)}"
    return None


def _swept_key(text: str) -> str | None:
    key, _, value = text.lstrip("+").partition("=")
    if not key.startswith("sweep."):
        return None
    mapping = f"{{{key.removeprefix('sweep.')}: {value}}}"
    return f"'{text}' must be written as 'sweep={mapping}', with the quotes"


def _about_keys(overrides: Sequence[str], base: DictConfig) -> str | None:
    """Of a key that there is not, or a word that has no value."""
    groups = [path.name for path in paths.configs().iterdir() if path.is_dir()]
    keys = [*groups, *_walk(base)]
    for text in overrides:
        key, equals, _ = text.lstrip("+").partition("=")
        if not equals:
            return f"'{text}' is not of the form key=value{_with_value(key, keys, base)}"
        if not (key in keys or key.startswith("hydra") or refusals.is_group(key)):
            which = f"there is no key '{key}'{nearest(key, keys)}; see them all with --cfg job"
            return _of_others(overrides, key) or which
    return None


def _of_others(overrides: Sequence[str], key: str) -> str | None:
    """Of a key that other methods or data sets have, such as another one of the same sweep."""
    owners = config.owners(key)
    if not owners:
        return None
    group = key.partition(".")[0]
    chosen = config.chosen_names(_choices(overrides))[group]
    return (
        f"{group}={chosen} has no key '{key}', which is one of {', '.join(owners)}: leave it out, or run "
        "only those that have it"
    )


def _with_value(key: str, keys: Sequence[str], base: DictConfig) -> str:
    """The nearest key; of one that is switched on, how."""
    is_switch = key in base and isinstance(base[key], bool)
    return f" (did you mean '{key}=true'?)" if is_switch else nearest(key, keys)


def _base(overrides: Sequence[str]) -> DictConfig | None:
    """The configuration with only the choices of `overrides` made, the first of each sweep; None
    where these alone are what was refused."""
    try:
        return config.composed(*_choices(overrides), *config.search_path())
    except Exception:  # whatever Hydra says of them, it has said once already
        return None


def _choices(overrides: Sequence[str]) -> list[str]:
    """What `overrides` choose, the first of each sweep."""
    choices = [text for text in overrides if refusals.is_group(_key(text))]
    return [_first_of(text.lstrip("+")) for text in choices]


def _key(text: str) -> str:
    return text.lstrip("+").partition("=")[0]


def _first_of(text: str) -> str:
    """A choice, the first of a sweep of them."""
    override, names = config.parsed(text), config.named_by(text)
    return (
        f"{_key(text)}={names[0]}" if override and override.is_sweep_override() and names else text
    )


def _below_nothing(overrides: Sequence[str], base: DictConfig) -> str | None:
    """Of keys below one that is null here, such as those of an encoder where there is none."""
    for text in overrides:
        key, _, value = text.lstrip("+").partition("=")
        parent = key if value.startswith("{") else key.rpartition(".")[0]
        if parent in base and base[parent] is None:
            return f"'{text}' sets a key of {parent}, which is null here: leave it out"
    return None


def _walk(cfg: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, cfg):
        yield f"{prefix}{key}"
        node = cfg._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_missing():
            yield from _walk(node, f"{prefix}{key}.")


def _needs_another(overrides: Sequence[str], error: Exception) -> str | None:
    """Of an experiment that speaks of a key which the chosen data set or method does not have."""
    match = re.search(r"Interpolation key '((dataset|method)\.\w+)' not found", str(error))
    if not match:
        return None
    chosen = config.chosen_names(overrides)
    return (
        f"experiment={chosen['experiment']} needs {match[1]}, which {match[2]}="
        f"{chosen[match[2]]} does not have: choose another {match[2]} or another experiment"
    )


def _in_hydras_words(overrides: Sequence[str], choices: Sequence[str], error: Exception) -> str:
    """The message without its stack of frames, with the key or what was typed beside the `choices`."""
    cause = _cause(error)
    full_key = str(getattr(cause, "full_key", None) or "")
    for typed in overrides:
        if full_key and _key(typed).startswith(f"{full_key}."):
            return f"'{typed}': {full_key} has one value, and no keys below it: set it, as in {full_key}=..."
    text = config.in_words(cause) or "Hydra takes no such value"
    if re.fullmatch(r"Key '.+' not in '\w+'", text):
        of_hydra = full_key.startswith("hydra")
        text = f"there is no key '{full_key}'; see them all with --cfg {'hydra' if of_hydra else 'job'}"
    said = text if full_key in text else f"{full_key}: {text}"
    if any(key in said for key in (text.lstrip("+").partition("=")[0] for text in overrides)):
        return said
    others = [text for text in overrides if text not in choices]
    suspects: list[Callable[[str], bool]] = [
        lambda typed: _refused(choices, typed),
        lambda typed: "${" in typed,
        lambda typed: "hydra" in typed,
    ]
    found = (typed for is_it in suspects for typed in others if is_it(typed))
    culprit = next(found, None)
    return f"'{culprit}' can't be used: {said}" if culprit else said


def _refused(choices: Sequence[str], text: str) -> bool:
    """Whether an override is refused even with nothing but the `choices` made."""
    try:
        config.composed(*choices, text, *config.search_path())
    except Exception:  # of whatever kind
        return True
    return False

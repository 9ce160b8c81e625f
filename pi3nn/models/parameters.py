"""The parameters of estimators: the keys of a method and of a run, their defaults and what they mean."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pi3nn import methods
from pi3nn.errors import nearest

if TYPE_CHECKING:
    from omegaconf import DictConfig

OF_RUN = ("calibrate", "folds", "repeats", "widen", "holdout", "scaling", "device", "engine")
"""Keys of a run, besides those of the method, that are parameters too."""

_RANDOM_STATE = (
    "int, RandomState instance or None",
    "Seed of networks, folds and batches: a whole number is that of `pi3nn-run seeds=[...]`. None: "
    "drawn anew at each fit.",
)
_CV = (
    "int, cross-validation generator or iterable",
    "The folds of `calibrate='cross'` and 'plus', as scikit-learn has them; it is given the `groups` of "
    "`fit`. None: `folds` and `repeats` say how rows are cut.",
)


class Constructor:
    """An ``__init__`` whose parameters are the keys of a method, and their values its defaults.

    These are composed when an estimator is made or its signature is asked for, not when its class is
    imported: that takes longer than all of the import, and workers import without asking.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        return self if estimator is None else functools.partial(self, estimator)

    def __call__(self, estimator: Any, /, **parameters: Any) -> None:
        known = defaults(self._kind)
        for name in parameters:
            if name not in known:
                raise TypeError(f"there is no parameter '{name}'{nearest(name, known)}")
        for name, value in {**known, **parameters}.items():
            setattr(estimator, name, value)

    @property
    def __signature__(self) -> inspect.Signature:
        make = inspect.Parameter
        keywords = [
            make(name, make.KEYWORD_ONLY, default=value)
            for name, value in defaults(self._kind).items()
        ]
        return inspect.Signature([make("self", make.POSITIONAL_OR_KEYWORD), *keywords])


class Docstring:
    """What is told of an estimator, with each of its parameters: made when it is asked for."""

    def __init__(self, kind: str, about: str) -> None:
        self._kind, self._about = kind, about

    def __get__(self, estimator: Any, owner: type | None = None) -> str:
        return f"{self._about.strip()}\n\n{_described(self._kind)}"


@functools.cache
def _described(kind: str) -> str:
    """The parameters, in NumPy's style, from the comments of the YAMLs that they are keys of."""
    from pi3nn import config

    of_run = config.key_meanings(config.RunConfig, "config")
    known = config.key_meanings(methods.get(kind).Settings, f"method/{kind}") | {
        name: of_run[name] for name in ("levels", *OF_RUN)
    }
    known |= {"random_state": _RANDOM_STATE, "cv": _CV}
    lines = ["Parameters", "----------"]
    for name, default in defaults(kind).items():
        kind_of_value, meaning = known[name]
        lines.append(f"{name} : {kind_of_value}, default={default!r}")
        lines += textwrap.wrap(meaning, 88, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


@functools.cache
def configuration(kind: str) -> DictConfig:
    """What ``pi3nn-run dataset=table method=<kind>`` would run."""
    from pi3nn import config

    return config.composed("experiment=fit", "dataset=table", f"method={kind}")


def of_method(kind: str) -> list[str]:
    return [str(name) for name in configuration(kind).method if name not in ("name", "kind")]


@functools.cache
def defaults(kind: str) -> Mapping[str, Any]:
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(configuration(kind), enum_to_str=True)
    assert isinstance(plain, dict)
    return {
        "levels": tuple(plain["levels"]),
        "random_state": None,
        "cv": None,
        **{name: plain["method"][name] for name in of_method(kind)},
        **{name: plain[name] for name in OF_RUN},
    }

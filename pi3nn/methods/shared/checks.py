"""What `Method.check` refuses: settings of the right type that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pi3nn.errors import UserError, nearest


def require_positive(settings: Any, *names: str) -> None:
    """Raise UserError unless each of these settings is positive."""
    _require(settings, names, lambda value: value > 0, "it must be more than 0")


def require_not_negative(settings: Any, *names: str) -> None:
    """Raise UserError unless each of these settings is 0 or more."""
    _require(settings, names, lambda value: value >= 0, "it must be 0 or more")


def require_share(settings: Any, *names: str) -> None:
    """Raise UserError unless each of these settings is from 0 to below 1."""
    _require(settings, names, lambda value: 0 <= value < 1, "a share, from 0 to below 1")


def require_one_of(settings: Any, name: str, *valid: str) -> None:
    """Raise UserError unless the setting `name` is one of the valid values."""
    choices = f"{', '.join(valid)}{nearest(str(getattr(settings, name)), valid)}"
    _require(settings, (name,), lambda value: value in valid, f"it must be one of {choices}")


def _require(
    settings: Any, names: tuple[str, ...], holds: Callable[[Any], bool], demand: str
) -> None:
    for name in names:
        value = getattr(settings, name)
        if not holds(value):
            raise UserError(f"method.{name}={value}: {demand}")

"""A value of the wrong type: the sentence says what the key takes."""

from __future__ import annotations

from typing import Any

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("workers", "many", "it takes a whole number, such as 3, not 'many'"),
        ("workers", [1], "it takes a whole number, such as 3, not '[1]'"),
        ("workers", None, "it takes a whole number, such as 3, not null"),
        ("workers", "${seeds}", "it takes a whole number, such as 3, not '[1]'"),
        ("holdout", "many", "it takes a number, such as 0.5, not 'many'"),
        ("holdout", {"a": 1}, "it takes a number, such as 0.5, not '{'a': 1}'"),
        ("levels", [None], "it takes a number, such as 0.5, not null"),
        ("levels", None, "levels takes a value, not null"),
        ("plan", "maybe", "it takes true or false, not 'maybe'"),
        ("store", [1], "it takes a text, not '[1]'"),
        ("calibrate", None, "it takes a value, not null"),
        ("calibrate", "no", "Invalid value 'no', expected one of [none, conformal, cross, plus]"),
    ],
)
def test_it_says_what_a_key_takes(key: str, value: Any, words: str) -> None:
    schema = OmegaConf.structured(config.RunConfig)
    with pytest.raises(OmegaConfBaseException) as refused:
        _resolved(OmegaConf.merge(schema, {"seeds": [1]}), {key: value})
    assert config.in_words(refused.value) == words


def _resolved(cfg: Any, change: dict[str, Any]) -> Any:
    return OmegaConf.to_container(OmegaConf.merge(cfg, change), resolve=True)

"""Which methods and data sets have a key."""

from __future__ import annotations

from pathlib import Path

from pi3nn import config
from pi3nn.config import choices
from tests.support.own_yamls import HOMES, own_folder


def test_a_key_belongs_to_the_choices_whose_settings_have_it(tmp_path: Path) -> None:
    choices.use_folders([own_folder(tmp_path, dataset_homes=HOMES)], only=True)
    assert config.owners("method.lambda_in") == ["piven", "qd"]
    assert config.owners("dataset.target") == ["homes", "table"]
    assert (
        config.owners("method.nowhere") == config.owners("seeds") == config.owners("foo.bar") == []
    )
    assert config.has("method", "qd", "lambda_in")
    assert not config.has("method", "nowhere", "lambda_in")
    choices.use_folders([], only=True)

"""Names and types are checked by the schema, and schemas are no choices."""

from __future__ import annotations

import pytest
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config, data, methods


@pytest.mark.parametrize(
    "override", ["seeds=[a]", "method.hidden=x", "scaling=sometimes", "method.hiden=3", "sedes=[1]"]
)
def test_wrong_names_and_types_are_refused_by_the_schema(override: str) -> None:
    with pytest.raises((HydraException, OmegaConfBaseException)):
        config.composed(override)


def test_schemas_are_in_a_group_of_their_own() -> None:
    config.register()
    stored = ConfigStore.instance()
    assert {"method", "dataset"}.isdisjoint(stored.repo)
    assert stored.list("schema/method") == [f"{kind}.yaml" for kind in methods.kinds()]
    assert stored.list("schema/dataset") == sorted(f"{name}.yaml" for name in data.sources())

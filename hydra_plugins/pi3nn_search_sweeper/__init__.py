"""Hydra's door to `pi3nn.run.search`: ``hydra/sweeper=search``.

As thin as that of the stacked sweeper, and for the same reason: Hydra imports it at each start.
"""

# No `from __future__ import annotations`: see the stacked sweeper.
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser

from hydra_plugins.pi3nn_stacked_sweeper import StackedSweeper


@dataclass
class SearchSweeperConf:
    """Keys below ``hydra.sweeper``."""

    _target_: str = "hydra_plugins.pi3nn_search_sweeper.SearchSweeper"
    # Trials that the study is to have in the end, those of earlier and of other processes among them.
    trials: int = 100
    # Trials that are suggested, and trained together, before the next suggestions learn from them.
    batch: int = 16
    # By its name in optuna.samplers: TPESampler, GPSampler, RandomSampler, GridSampler ...
    sampler: str = "TPESampler"
    # Of the sampler: the same suggestions again, with one process.
    seed: int = 1
    # The folder of the study, beside the store; null: made of what was typed.
    study: str | None = None
    # As of the stacked sweeper.
    shards: int = 0
    params: Any = None


ConfigStore.instance().store(group="hydra/sweeper", name="search", node=SearchSweeperConf)


class SearchSweeper(StackedSweeper):
    """Points that Optuna suggests, trained as the stacked sweeper trains them."""

    def __init__(self, shards: int, params: Any, **options: Any) -> None:
        super().__init__(shards, params)
        self.options = options

    def sweep(self, arguments: list[str]) -> None:
        from pi3nn.cli.overrides import explain
        from pi3nn.errors import UserError

        try:
            from pi3nn.run import search
        except ImportError as error:  # not there, or of a version that lacks something
            if (error.name or "").partition(".")[0] != "optuna":
                raise
            raise UserError(
                "hydra/sweeper=search needs Optuna 5: pip install 'pi3nn[search]'"
            ) from error
        if any(text.startswith("hydra.sweep.dir=") for text in self.config.hydra.overrides.hydra):
            raise UserError(
                "hydra.sweep.dir is not for a search, whose folder is search/<study> beside the store: "
                "give hydra.sweeper.study=<name>"
            )
        products = self.brought()
        if len(products) > 1:
            raise UserError(
                "this experiment is several sweeps, and a search is of one: give another"
            )
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*products[0], *arguments])
        search.run(overrides, self.launching(), search.SearchOptions(**self.options), explain)

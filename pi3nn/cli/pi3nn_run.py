"""``pi3nn-run``: train what a configuration describes, print its table, draw its figure."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pi3nn import paths
from pi3nn.cli.main import cant_write, run_command
from pi3nn.errors import UserError

_HELP = """\
Train prediction-interval methods on the paper's data or your own; print and store the results.

  pi3nn-run experiment=uci dataset=boston                one method, three splits, all widths
  pi3nn-run dataset=wine method=linear                   another data set, another method
  pi3nn-run dataset=boston seeds=3 method.hidden=100     what you set is no longer swept
  pi3nn-run dataset=boston levels=[0.5,0.9,0.99]         other levels: nothing is trained again
  pi3nn-run dataset=boston protocol=released             as in the authors' released runs
  pi3nn-run -m dataset=boston,wine method.hidden=20,50   a sweep: every combination, few stacks
  pi3nn-run -m dataset=boston,wine plan=true             what would be trained, and how long
  pi3nn-run dataset=boston explain=true                  every value and where it comes from
  pi3nn-run dataset=boston --cfg job                     show the configuration, run nothing

Choices:
{choices}

Keys (see --cfg job for all, with those of the method and the data set):
  levels=[0.95]  splits=[1,2,3]  seeds=[1,2,3,4,5]   what to train and evaluate
  'sweep={{method.hidden: [50,100]}}'                  the grid of hyper-parameters
  store=results/runs   trained members; what is there is not trained again
  workers=0            processes (0: one per core)      device=cpu      force=true: train again
Tables and figures go to results/<experiment>/<dataset>/<method>-<protocol>/.
Data: `pi3nn-data --help`. Results: `pi3nn-report --help`. Hydra's own help: --hydra-help."""

_GROUPS = ("experiment", "dataset", "method", "protocol")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    command = shlex.join(["pi3nn-run", *typed])
    run_command(
        "pi3nn-run",
        _run,
        typed,
        stopped=f"stopped; what is stored is kept. To go on: {command}",
        explain=lambda error: _explain(typed, error),
    )


def help_text() -> str:
    """What ``--help`` prints: usage, and the choices in every config group."""
    paragraphs = [
        textwrap.fill(
            " ".join(choices(group)),
            width=88,
            initial_indent=f"  {group + '=':<12}",
            subsequent_indent=" " * 14,
            break_on_hyphens=False,
        )
        for group in _GROUPS
    ]
    return _HELP.format(choices="\n".join(paragraphs))


def choices(group: str) -> list[str]:
    """Names of the YAML files of a config group."""
    return sorted(path.stem for path in (paths.configs() / group).glob("*.yaml"))


def _run(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(help_text())
        return 0
    from pi3nn.cli import overrides

    sys.argv[1:] = overrides.as_hydra_wants(arguments)
    _hydra_main()
    return 0


def _explain(typed: Sequence[str], error: Exception) -> str | None:
    """What to tell a user of a configuration that Hydra refused."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from pi3nn.cli import overrides

    if isinstance(error, FileNotFoundError) and error.filename in overrides.typed_folders(typed):
        return cant_write(error)
    if isinstance(error, (HydraException, OmegaConfBaseException)):
        return overrides.explain(typed, error)
    return None


@contextmanager
def _raising() -> Iterator[None]:
    """Hydra would print its own text of an error and exit with 1; here it raises it instead."""
    name = "HYDRA_FULL_ERROR"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _hydra_main() -> None:
    import hydra
    from hydra.types import RunMode
    from omegaconf import DictConfig

    from pi3nn import config
    from pi3nn.run import folders

    config.register(sys.argv[1:])
    folders.register()
    mistakes: list[Exception] = []

    @hydra.main(version_base="1.3", config_path=str(paths.configs()), config_name="config")
    def job(cfg: DictConfig) -> None:
        from hydra.core.hydra_config import HydraConfig

        settings = HydraConfig.get()
        folder = Path(settings.runtime.output_dir)
        try:
            execute(cfg, settings.overrides.task, folder, settings.mode is RunMode.MULTIRUN)
        except Exception as error:
            if settings.mode is RunMode.MULTIRUN:  # the sweeper lists it with the others
                if not isinstance(error, (UserError, OSError)):
                    text = "".join(traceback.format_exception(error))
                    (folder / "error.txt").write_text(text)
                raise
            mistakes.append(error)  # raised here, Hydra would print words of its own first

    with _raising():
        job()
    if mistakes:
        raise mistakes[0]


def _load_figures() -> None:
    """matplotlib takes half a second to load, of which nothing is seen while workers train."""
    from pi3nn.results import figures  # noqa: F401


def execute(cfg: object, overrides: Sequence[str], folder: Path, in_sweep: bool = False) -> None:
    """One job: check, run, and write table and figure into `folder`; or only say what it would do."""
    from omegaconf import DictConfig

    from pi3nn import config
    from pi3nn.paper.run_verdicts import beside_paper
    from pi3nn.results import run_page, summary
    from pi3nn.run import forecast, save
    from pi3nn.run.request import request

    assert isinstance(cfg, DictConfig)
    if cfg.explain:
        print("\n".join(config.explain(cfg, overrides)))
        return
    asked = request(cfg, overrides)
    store, levels, options = asked.store, asked.levels, asked.options
    if cfg.plan:
        print("\n".join(forecast.describe(asked.wanted(store), options)))
        return
    if cfg.save_model:
        save.check(asked.members, folder / "model", cfg.force)
    trained = asked.train(options if in_sweep else replace(options, meanwhile=_load_figures))
    run = summary.RunSummary(asked.keys, levels, asked.unit, trained, asked.changed)
    summary.write(store, run, folder, in_sweep, beside_paper)
    run_page.note(folder, store, run)
    if cfg.save_model:
        save.save(asked.members, store, levels, folder / "model")
        print(summary.in_words(store, run))
        print(f"Predict with: pi3nn-predict model={folder / 'model'} data=new.csv output=out.csv")

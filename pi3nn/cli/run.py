"""``pi3nn-run``: train what a configuration describes, print its table, draw its figure."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pi3nn import paths
from pi3nn.errors import UserError

_HELP = """\
Train prediction-interval methods on the paper's data or your own; print and store the results.

  pi3nn-run experiment=uci dataset=boston                one method, three splits, all widths
  pi3nn-run dataset=wine method=linear                   another data set, another method
  pi3nn-run dataset=boston seeds=3 method.hidden=100     what you set is no longer swept
  pi3nn-run dataset=boston levels=[0.5,0.9,0.99]         other levels: nothing is trained again
  pi3nn-run dataset=boston protocol=released             as in the authors' released runs
  pi3nn-run -m dataset=boston,wine,yacht                 several runs, one after the other
  pi3nn-run dataset=boston --cfg job                     show the configuration, run nothing

Choices:
{choices}

Keys (see --cfg job for all, with those of the method and the data set):
  levels=[0.95]  splits=[1,2,3]  seeds=[1,2,3,4,5]   what to train and evaluate
  'sweep={{method.hidden: [50,100]}}'                  the grid of hyper-parameters
  store=results/runs   trained members; what is there is not trained again
  workers=0            processes (0: one per core)      device=cpu
Tables and figures go to results/<experiment>/<dataset>/<method>-<protocol>/.
Data: `pi3nn-data --help`. Results: `pi3nn-report --help`. Hydra's own help: --hydra-help."""

_GROUPS = ("experiment", "dataset", "method", "protocol")


def main() -> None:
    """Entry point of the command."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(help_text())
        return
    sys.exit(_guarded(arguments))


def help_text() -> str:
    """What ``--help`` prints: usage, and the choices in every config group."""
    lines = []
    for group in _GROUPS:
        line = f"  {group + '=':<12}"
        for name in choices(group):
            if len(line) + len(name) > 88:
                lines.append(line)
                line = " " * 14
            line += f"{name} "
        lines.append(line)
    return _HELP.format(choices="\n".join(line.rstrip() for line in lines))


def choices(group: str) -> list[str]:
    """Names of the YAML files of a config group."""
    return sorted(path.stem for path in (paths.configs() / group).glob("*.yaml"))


def _guarded(arguments: list[str]) -> int:
    """Run, and turn a user's mistake into one sentence and exit code 2."""
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    # Hydra would print its own text and exit with 1; this makes it raise instead.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from pi3nn.cli import mistakes

    try:
        sys.argv[1:] = mistakes.as_meant(arguments)
        _hydra_main()
    except UserError as error:
        if wants_traceback:
            raise
        return _say(str(error))
    except (HydraException, OmegaConfBaseException) as error:
        if wants_traceback:
            raise
        return _say(mistakes.explain(arguments, error))
    except KeyboardInterrupt:
        return _say("stopped; what is stored is kept: the same command goes on from there", 130)
    return 0


def _say(sentence: str, code: int = 2) -> int:
    print(f"pi3nn-run: {sentence}", file=sys.stderr)
    return code


def _hydra_main() -> None:
    import hydra
    from omegaconf import DictConfig

    from pi3nn import config

    config.register()
    mistakes: list[UserError] = []

    @hydra.main(version_base="1.3", config_path=str(paths.configs()), config_name="config")
    def job(cfg: DictConfig) -> None:
        from hydra.core.hydra_config import HydraConfig

        settings = HydraConfig.get()
        try:
            execute(cfg, settings.overrides.task, Path(settings.runtime.output_dir))
        except UserError as error:
            mistakes.append(error)  # raised here, Hydra would print words of its own first

    job()
    if mistakes:
        raise mistakes[0]


def execute(cfg: object, overrides: Sequence[str], folder: Path) -> None:
    """One job: check, run, and write table and figure into `folder`."""
    from omegaconf import DictConfig

    from pi3nn import config, runner
    from pi3nn.paper import summary
    from pi3nn.store import Store

    assert isinstance(cfg, DictConfig)
    config.settle_sweep(cfg, overrides)
    config.check(cfg)
    members, trained = runner.run(cfg)
    run = summary.Run([m.key for m in members], list(cfg.levels), cfg.unit.value, trained)
    summary.write(Store(cfg.store), run, folder)

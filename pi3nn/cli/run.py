"""``pi3nn-run``: train what a configuration describes, print its table, draw its figure."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pi3nn import paths
from pi3nn.cli.leaving import leave_with
from pi3nn.errors import SweepError, UserError

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


def main() -> None:
    """Entry point of the command."""
    leave_with(lambda: _guarded(sys.argv[1:]))


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
    if {"-h", "--help"} & set(arguments):
        print(help_text())
        return 0
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    # Hydra would print its own text and exit with 1; this makes it raise instead.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        from pi3nn.cli import mistakes

        sys.argv[1:] = mistakes.as_meant(arguments)
        _hydra_main()
    except KeyboardInterrupt:
        command = shlex.join(["pi3nn-run", *arguments])
        return _say(f"stopped; what is stored is kept. To go on: {command}", 130)
    except SweepError as error:
        return _say(str(error), 1)
    except Exception as error:
        said = _in_a_sentence(arguments, error)
        if said is None or wants_traceback:
            raise
        return _say(said)
    return 0


def _in_a_sentence(arguments: list[str], error: Exception) -> str | None:
    """What to tell a user of his mistake; None for a mistake of ours."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from pi3nn.cli import mistakes

    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, (HydraException, OmegaConfBaseException)):
        return mistakes.explain(arguments, error)
    if isinstance(error, OSError) and error.errno in _ABOUT_FOLDERS:
        where = f" {error.filename}" if error.filename else " the results"
        return f"can't write{where}: {os.strerror(error.errno).lower()}; what is stored is kept"
    return None


# What an operating system says of a folder that can't take tables and figures.
_ABOUT_FOLDERS = {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR
}  # fmt: skip


def _say(sentence: str, code: int = 2) -> int:
    print(f"pi3nn-run: {sentence}", file=sys.stderr)
    return code


def _hydra_main() -> None:
    import hydra
    from hydra.types import RunMode
    from omegaconf import DictConfig

    from pi3nn import config

    config.register(sys.argv[1:])
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
                _keep_traceback(error, folder)
                raise
            mistakes.append(error)  # raised here, Hydra would print words of its own first

    job()
    if mistakes:
        raise mistakes[0]


def _keep_traceback(error: Exception, folder: Path) -> None:
    if not isinstance(error, (UserError, OSError)):
        (folder / "error.txt").write_text("".join(traceback.format_exception(error)))


def _load_figures() -> None:
    """matplotlib takes half a second to load, of which nothing is seen while workers train."""
    from pi3nn.paper import figures  # noqa: F401


def execute(cfg: object, overrides: Sequence[str], folder: Path, in_sweep: bool = False) -> None:
    """One job: check, run, and write table and figure into `folder`; or only say what it would do."""
    from omegaconf import DictConfig

    from pi3nn import config, export, forecast, plan, runner
    from pi3nn.paper import run_report, summary
    from pi3nn.store import Store

    assert isinstance(cfg, DictConfig)
    config.settle_sweep(cfg, overrides)
    config.check(cfg)
    if cfg.explain:
        print("\n".join(config.explain(cfg, overrides)))
        return
    if cfg.plan:
        how = runner.How(cfg.workers, cfg.memory, cfg.force)
        print("\n".join(forecast.describe(plan.members(cfg), Store(cfg.store), how)))
        return
    if cfg.save_model:
        export.check(plan.members(cfg))
    members, trained = runner.run(cfg, None if in_sweep else _load_figures)
    store, levels = Store(cfg.store), list(cfg.levels)
    run = summary.Run([m.key for m in members], levels, cfg.unit.value, trained)
    summary.write(store, run, folder, in_sweep)
    run_report.note(folder, store, run, export.reliability(members, store))
    if cfg.save_model:
        export.export(members, store, levels, folder / "model")
        print(summary.in_words(store, run))
        print(f"Predict with: pi3nn-predict model={folder / 'model'} data=new.csv output=out.csv")

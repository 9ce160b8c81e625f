"""``pi3nn-run``: train what a configuration describes, print its table, draw its figure."""

from __future__ import annotations

import io
import math
import os
import shlex
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

from pi3nn import paths
from pi3nn.cli.main import cant_write, run_command
from pi3nn.errors import UserError

if TYPE_CHECKING:
    from pi3nn.run.request import Request

_HELP = """\
Train prediction-interval methods on the paper's data or your own; print and store the results.

  pi3nn-run experiment=uci dataset=boston                one method, three splits, all widths
  pi3nn-run dataset=wine method=linear                   another data set, another method
  pi3nn-run dataset=boston seeds=3 method.hidden=100     seed number 3; what you set is not swept
  pi3nn-run dataset=boston levels=[0.5,0.9,0.99]         other levels: nothing is trained again
  pi3nn-run dataset=boston protocol=released             as in the authors' released runs
  pi3nn-run -m dataset=boston,wine method.hidden=20,50   a sweep: every combination, few stacks
  pi3nn-run -m hydra/sweeper=search dataset=boston 'method.l1=tag(log,interval(1e-5,1e-1))'
                                                         a search for the best settings
  pi3nn-run -m dataset=boston,wine plan=true             what would be trained, and how long
  pi3nn-run dataset=boston explain=true                  every value and where it comes from
  pi3nn-run dataset=boston --cfg job                     show the configuration, run nothing

Choices:
{choices}

Keys (see --cfg job for all, with those of the method and the data set):
  levels=[0.95]  splits=[1,2,3]  seeds=[1,2,3,4,5]   what to train and evaluate; seeds=3 is
                                                     seed number 3, not three of them
  'sweep={{method.hidden: [50,100]}}'                  the grid of hyper-parameters
  store=results/runs   trained members; what is there is not trained again
  workers=0            processes (0: one per core)      device=cpu      force=true: train again
  --config-dir FOLDER  YAMLs of your own, then among the choices     --version: and the engine
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


def help_text(arguments: Sequence[str] = ()) -> str:
    """What ``--help`` prints: usage, and the choices in every config group, those of folders that
    `arguments` name among them."""
    names = choices
    if any(text.startswith(("--config-dir", "-cd", "hydra.searchpath")) for text in arguments):
        from pi3nn import config

        config.use_folders(arguments, only=True)
        names = config.names
    paragraphs = [
        textwrap.fill(
            " ".join(names(group)),
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
        print(help_text(arguments))
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
    if isinstance(error, (HydraException, OmegaConfBaseException)) or _is_of_hydra(error):
        return overrides.explain(typed, error)
    return None


def _is_of_hydra(error: Exception) -> bool:
    """Whether Hydra or OmegaConf raised it, and not code of ours that they called.

    While they read what was typed, they raise whatever their code runs into.
    """
    packages = [
        frame.f_globals.get("__name__", "").split(".")[0]
        for frame, _ in walk_tb(error.__traceback__)
    ]
    known = [name for name in packages if name in ("hydra", "omegaconf", "hydra_plugins", "pi3nn")]
    return bool(known) and known[-1] in ("hydra", "omegaconf")


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


@contextmanager
def _one_sentence_of_cfg() -> Iterator[None]:
    """Of a ``--package`` that there is not, Hydra speaks itself, and exits with 1."""
    if not any(word.startswith(("--cfg", "-c")) for word in sys.argv[1:]):
        yield
        return
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit as ended:
        if not ended.code:
            raise
        text = said.getvalue().strip()
        raise UserError(f"{text}: leave --package out, or name a part, such as method") from None


def _hydra_main() -> None:
    import hydra
    from hydra.types import RunMode
    from omegaconf import DictConfig

    from pi3nn import config
    from pi3nn.run import folders, objective

    config.register(sys.argv[1:])
    folders.register()
    mistakes: list[Exception] = []

    @hydra.main(version_base="1.3", config_path=str(paths.configs()), config_name="config")
    def job(cfg: DictConfig) -> float | None:
        from hydra.core.hydra_config import HydraConfig

        settings = HydraConfig.get()
        folder = Path(settings.runtime.output_dir)
        os.chdir(settings.runtime.cwd)  # what was typed is relative to it, whatever hydra.job.chdir
        sweeper = settings.runtime.choices["hydra/sweeper"]
        is_job = settings.mode is RunMode.MULTIRUN
        try:
            if is_job:
                objective.check(cfg, sweeper)
            # Hydra's own sweeper says nothing at its end: then each job speaks for itself.
            in_sweep = is_job and sweeper != "basic"
            return execute(cfg, settings.overrides.task, folder, in_sweep)
        except Exception as error:
            if is_job:  # the sweeper lists it with the others
                if not isinstance(error, (UserError, OSError)):
                    text = "".join(traceback.format_exception(error))
                    (folder / "error.txt").write_text(text)
                raise
            mistakes.append(error)  # raised here, Hydra would print words of its own first
            return None

    with _raising(), _one_sentence_of_cfg():
        job()
    if mistakes:
        raise mistakes[0]


def _load_figures() -> None:
    """matplotlib takes half a second to load, of which nothing is seen while workers train."""
    from pi3nn.results import figures  # noqa: F401


def execute(
    cfg: object, overrides: Sequence[str], folder: Path, in_sweep: bool = False
) -> float | None:
    """One job: check, run, and write table and figure into `folder`; or only say what it would do.

    Returns its objective, if it has one.
    """
    from omegaconf import DictConfig

    from pi3nn import config
    from pi3nn.run.request import request

    assert isinstance(cfg, DictConfig)
    if cfg.explain:
        print("\n".join(config.explain(cfg, overrides)))
        return None
    if cfg.detach and not in_sweep:
        raise UserError("detach=true is for sweeps: add -m and hydra/launcher=submitit_slurm")
    asked = request(cfg, overrides)
    if cfg.plan:
        from pi3nn.run import forecast

        print("\n".join(forecast.describe(asked.wanted(asked.store), asked.options)))
        return None
    from pi3nn.run import save
    from pi3nn.run.execute import mended
    from pi3nn.run.objective import objective

    if cfg.save_model:
        save.check(asked.members, folder / "model", cfg.force)
    options = asked.options if in_sweep else replace(asked.options, meanwhile=_load_figures)

    def run() -> float | None:
        trained = asked.train(options)
        score = objective(asked)
        # A search goes on where a training failed, of which there is no model.
        model = folder / "model" if cfg.save_model and score != math.inf else None
        if cfg.dataset.source == "table":
            _show_own(asked, overrides, folder, model, in_sweep)
        else:
            _show(asked, trained, folder, model, in_sweep)
        return score

    return mended(run)


def _show(asked: Request, trained: int, folder: Path, model: Path | None, in_sweep: bool) -> None:
    """Tables and figure of a run, into `folder`, and the model, if it has a place."""
    from pi3nn.paper.run_verdicts import beside_paper
    from pi3nn.results import run_notes, summary
    from pi3nn.run import save

    store, levels = asked.store, asked.levels
    run = summary.RunSummary(asked.keys, levels, asked.unit, trained, asked.changed)
    summary.write(store, run, folder, in_sweep, beside_paper)
    run_notes.leave(folder, run_notes.Note(store, asked.keys, levels))
    if model:
        save.save(asked.members, store, levels, model)
        print(summary.in_words(store, run))
        print(f"Predict with: {save.predict_command(model)}")


def _show_own(
    asked: Request, overrides: Sequence[str], folder: Path, model: Path | None, in_sweep: bool
) -> None:
    """The same of a run on one's own table, which has a page and words of its own."""
    from pi3nn import config
    from pi3nn.results import own_summary
    from pi3nn.results.account import in_title
    from pi3nn.results.run_notes import Note
    from pi3nn.run import account, save

    named_by_file = f"dataset.name='{config.file_name(asked.cfg.dataset.path)}'"  # which was added
    typed = [text for text in overrides if text != named_by_file]
    command = shlex.join(["pi3nn-run", *typed])
    made = account.account(asked.members, asked.store, asked.levels, command, model)
    title = in_title(asked.cfg.dataset.target, asked.cfg.dataset.path)
    note = Note(asked.store, asked.keys, asked.levels, title, made)
    own_summary.write(note, folder, in_sweep)
    if model:
        save.save(asked.members, asked.store, asked.levels, model)
        print(f"Predict with: {save.predict_command(model)}")
    if not in_sweep:
        print(own_summary.where(note, folder))

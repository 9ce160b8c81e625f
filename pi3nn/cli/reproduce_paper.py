"""``scripts/reproduce_paper``: run the paper, export its results, build its report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pi3nn.cli.main import parser_of, run_command
from pi3nn.errors import SweepError
from pi3nn.paper import exports, tasks
from pi3nn.paper.tasks import Task
from pi3nn.store import Store

_EPILOG = """\
Shards are experiment x data set x method, in an order in which the cheap and important ones come first.
A shard whose table is in <output>/records/<protocol>/ is done; members in the store are not trained
again. Stop it with Ctrl-C and start it again with the same command: it goes on where it was."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the script."""
    run_command(
        "reproduce_paper",
        _run,
        arguments,
        stopped="stopped; exported shards and stored members are kept: start it again",
    )


def _parser() -> argparse.ArgumentParser:
    about = "Run every experiment of the paper and compare it with what is printed."
    parser = parser_of("reproduce_paper", about, _EPILOG)
    add = parser.add_argument
    add("--protocol", choices=tasks.PROTOCOLS, default="paper", help="default: paper")
    add(
        "--budget",
        choices=tasks.BUDGETS,
        default="full",
        help="full: as in the paper (hours) | quick: fewer seeds, smaller grids, fewer rows (minutes) | "
        "grid: what full leaves out, SQR's 405 runs on the large sets (released; hours)",
    )
    add("--only", nargs="+", metavar="PATTERN", default=[], help="shards such as 'uci-*-pi3nn'")
    add("--list", action="store_true", help="name the shards and what is done; run nothing")
    add("--plan", action="store_true", help="say what would be trained and how long; run nothing")
    add("--store", default="results/runs", help="trained members; default: results/runs")
    add("--output", type=Path, help="default: results/paper, for quick results/paper-quick")
    return parser


def _run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    folder = options.output or Path(tasks.FOLDERS[options.budget])
    chosen = tasks.selected(options.protocol, options.budget, options.only)
    exports.check_budget(folder, options.protocol, chosen[0].budget)
    to_do = [task for task in chosen if not exports.path(folder, task).is_file()]
    if options.list:
        for task in chosen:
            note = f"  ({task.note})" if task.note else ""
            print(f"{'    ' if task in to_do else 'done'}  {task.name}{note}")
        return 0
    where, done = exports.records_folder(folder, options.protocol), len(chosen) - len(to_do)
    budget = "" if options.budget == "full" else f", {options.budget}"
    print(f"{len(chosen)} shards of {options.protocol}{budget}: {done} are in {where}", flush=True)
    if to_do and not options.plan:
        exports.check_writable(where)
    failed = _train(to_do, options, folder) if to_do else []
    return 0 if options.plan else _end(folder, failed)


def _train(to_do: Sequence[Task], options: argparse.Namespace, folder: Path) -> list[str]:
    """Show the plan and, unless that is all, run it; returns the names of tasks that failed."""
    from pi3nn.run import reproduce  # torch, which takes its time

    store = Store(options.store)
    jobs = [reproduce.prepare(task) for task in to_do]
    for line in reproduce.describe(jobs, store, probing=options.budget != "quick"):
        print(line, flush=True)
    if options.plan:
        return []
    for number, (job, done) in enumerate(reproduce.run_all(jobs, store, folder), 1):
        print(f"[{number}/{len(jobs)}] {job.task.name}: {done or job.failure}", flush=True)
    return [job.task.name for job in jobs if job.failure]


def _end(folder: Path, failed: Sequence[str]) -> int:
    """Build the report of all there is, and say what failed."""
    if any((folder / "records").rglob("*.csv.gz")):
        from pi3nn.paper import report

        print(f"the report is {report.write(folder)}, made of {folder / 'records'}")
    if failed:
        raise SweepError(f"failed: {', '.join(failed)}; start it again to try them again")
    return 0

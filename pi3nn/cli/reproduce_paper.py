"""``scripts/reproduce_paper``: run the paper, export its results, build its report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pi3nn.cli.main import run_command
from pi3nn.errors import SweepError
from pi3nn.paper import export, shards
from pi3nn.paper.shards import Shard
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
    parser = argparse.ArgumentParser(
        prog="reproduce_paper",
        description="Run every experiment of the paper and compare it with what is printed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--protocol", choices=shards.PROTOCOLS, default="paper", help="default: paper")
    add(
        "--budget",
        choices=shards.BUDGETS,
        default="full",
        help="full: as in the paper (hours) | quick: fewer seeds, smaller grids, fewer rows (minutes)",
    )
    add("--only", nargs="+", metavar="PATTERN", default=[], help="shards such as 'uci-*-pi3nn'")
    add("--list", action="store_true", help="name the shards and what is done; run nothing")
    add("--plan", action="store_true", help="say what would be trained and how long; run nothing")
    add("--store", default="results/runs", help="trained members; default: results/runs")
    add("--output", type=Path, help="default: results/paper, for quick results/paper-quick")
    return parser


def _run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    folder = options.output or Path(shards.FOLDERS[options.budget])
    export.check_budget(folder, options.protocol, options.budget)
    chosen = shards.selected(options.protocol, options.budget, options.only)
    left = [shard for shard in chosen if not shards.path(folder, shard).is_file()]
    if options.list:
        for shard in chosen:
            note = f"  ({shard.note})" if shard.note else ""
            print(f"{'    ' if shard in left else 'done'}  {shard.name}{note}")
        return 0
    where, done = shards.records_folder(folder, options.protocol), len(chosen) - len(left)
    budget = ", quick" if options.budget == "quick" else ""
    print(f"{len(chosen)} shards of {options.protocol}{budget}: {done} are in {where}", flush=True)
    if left and not options.plan:
        export.check_place(where)
    failed = _train(left, options, folder) if left else []
    return 0 if options.plan else _end(folder, failed)


def _train(left: Sequence[Shard], options: argparse.Namespace, folder: Path) -> list[str]:
    """Show the plan and, unless that is all, run it; returns the names of shards that failed."""
    from pi3nn.run import reproduce  # torch, which takes its time

    store = Store(options.store)
    jobs = [reproduce.prepare(shard) for shard in left]
    for line in reproduce.describe(jobs, store, probing=options.budget == "full"):
        print(line, flush=True)
    if options.plan:
        return []
    for number, (job, done) in enumerate(reproduce.run_all(jobs, store, folder), 1):
        print(f"[{number}/{len(jobs)}] {job.shard.name}: {done or job.failure}", flush=True)
    return [job.shard.name for job in jobs if job.failure]


def _end(folder: Path, failed: Sequence[str]) -> int:
    """Build the report of all there is, and say what failed."""
    if any((folder / "records").rglob("*.csv.gz")):
        from pi3nn.paper import report

        print(f"the report is {report.write(folder)}, made of {folder / 'records'}")
    if failed:
        raise SweepError(f"failed: {', '.join(failed)}; start it again to try them again")
    return 0

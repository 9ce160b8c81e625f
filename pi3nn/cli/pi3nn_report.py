"""``pi3nn-report``: tables, pictures and reports of what was run. Never trains, never imports torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pi3nn import atomic
from pi3nn.cli.main import parser_of, run_command
from pi3nn.errors import UserError, counted
from pi3nn.store import Store

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLES = """\
examples:
  pi3nn-report records                                    all records of ./results/runs as CSV
  pi3nn-report records dataset=boston set=test --output boston.csv
  pi3nn-report records method=pi3nn hidden=100 scaling=full --output full.parquet
  pi3nn-report records gamma=0.95 --store results/runs elsewhere/runs   two stores as one
  pi3nn-report run results/uci/boston/pi3nn-paper         one page of pictures: report.html in it
  pi3nn-report sweep results/sweeps/2026-05-01_10-00-00   the table of what is done so far, and what is missing
  pi3nn-report predictions results/uci/boston/pi3nn-paper set=test --output bounds.parquet
  pi3nn-report score bounds.parquet                       judge anybody's intervals
  pi3nn-report score mine.csv target=price level=0.9 lower=low upper=high
  pi3nn-report mlflow results/uci/boston/pi3nn-paper --uri sqlite:///mlflow.db
  pi3nn-report paper                                      the paper, cell by cell: results/paper/report.html
  pi3nn-report paper elsewhere --protocol released        from other exported records, one protocol only
  pi3nn-report paper --compare elsewhere                  what moved between two machines' reports
  pi3nn-report verify                                     check every byte of the store, clear what killed runs left
  pi3nn-report verify --seal --clear                      add checksums to old members, remove damaged ones

A record is one member, one evaluation set and one level; docs/records.md explains its columns.
A filter is column=value, or column=value1,value2; any key of the configuration will do, too."""


_KINDS = "*.csv, *.parquet, *.feather, *.json or *.xlsx (default: CSV on the screen)"
_SCORE = """\
Judge intervals that somebody made: one row of the file is one row of data, with its true value and
its bounds in columns. Columns named lower_0.95 and upper_0.95, as pi3nn-predict and pi3nn-report
predictions write them, are found by themselves, others are named:

  target=NAME       the true value (default: y)
  level=0.9,0.95    the levels to judge (default: all that are found)
  lower=a,b         columns of the lower bounds at these levels, if they have other names
  upper=c,d         and of the upper ones
  prediction=NAME   point predictions, to judge them, too (default: prediction, if there is one)"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    run_command("pi3nn-report", _run, arguments)


def _parser() -> argparse.ArgumentParser:
    about = "Read what was run: the store of trained members, and exported records."
    parser = parser_of("pi3nn-report", about, _EXAMPLES)
    commands = parser.add_subparsers(
        required=True,
        metavar="records | run | sweep | predictions | score | mlflow | paper | verify",
    )
    records = commands.add_parser(
        "records", help="records as CSV, one row per member, set and level"
    )
    records.set_defaults(run=_records)
    add = records.add_argument
    add("filters", nargs="*", metavar="column=value")
    add("--output", type=Path, metavar="FILE", help=_KINDS)
    add("--store", nargs="+", default=["results/runs"], help="default: results/runs")
    run = commands.add_parser("run", help="one page with the pictures of a run, as HTML")
    run.set_defaults(run=_page)
    run.add_argument("folder", type=Path, help="where pi3nn-run put its tables")
    run.add_argument("--output", type=Path, metavar="FILE", help="default: report.html in it")
    sweep = commands.add_parser(
        "sweep",
        help="what a sweep has done so far, and what is missing and why",
        description="Write the table and the figure of the jobs that are done into the sweep's folder; say "
        "which members are missing: pending or running in a cluster, failed, lost, or not submitted "
        "(docs/cluster.md, docs/ray.md). The exit code is 1 where the same command has something to train.",
    )
    sweep.set_defaults(run=_sweep)
    sweep.add_argument("folder", type=Path, help="that of the sweep, in results/sweeps")
    predictions = commands.add_parser(
        "predictions", help="every row of a run with its bounds, in the units of the target"
    )
    predictions.set_defaults(run=_predictions)
    add = predictions.add_argument
    add("folder", type=Path, help="where pi3nn-run put its tables")
    add("filters", nargs="*", metavar="column=value", help="such as set=test seed=1")
    add("--output", type=Path, metavar="FILE", help=_KINDS)
    score = commands.add_parser(
        "score",
        help="coverage, width and interval score of anybody's intervals, from a file",
        description=_SCORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    score.set_defaults(run=_score)
    score.add_argument("file", type=Path, help="*.csv, *.tsv, *.parquet, *.feather, *.json, *.xlsx")
    score.add_argument("keys", nargs="*", metavar="key=value")
    mlflow = commands.add_parser("mlflow", help="a run or a sweep to MLflow, scenario by scenario")
    mlflow.set_defaults(run=_mlflow)
    add = mlflow.add_argument
    add("folder", type=Path, help="where pi3nn-run put its tables")
    where = "where MLflow keeps its runs: sqlite:///mlflow.db, http://localhost:5000"
    add("--uri", required=True, help=where)
    paper = commands.add_parser(
        "paper",
        help="every table and figure of the paper beside ours, with verdicts, from exported records",
        description="Write tables, figures, verdicts.csv, summary.md and report.html into the folder "
        "of the records that scripts/reproduce_paper exports.",
    )
    paper.set_defaults(run=_paper)
    add, default = paper.add_argument, Path("results/paper")
    add("folder", type=Path, nargs="?", default=default, help="default: results/paper")
    only = "this one only (default: all that have records)"
    add("--protocol", choices=["paper", "released"], help=only)
    beside = "write nothing, but show how the numbers and verdicts of another such folder differ"
    add("--compare", type=Path, metavar="OTHER", help=beside)
    written = "of --compare: *.md as on the screen, *.csv every cell (default: the screen)"
    add("--output", type=Path, metavar="FILE", help=written)
    verify = commands.add_parser("verify", help="check a store, clear what killed runs left behind")
    verify.set_defaults(run=_verify)
    add = verify.add_argument
    add("--store", default="results/runs", help="default: results/runs")
    add("--seal", action="store_true", help="add checksums to members of older versions")
    add("--clear", action="store_true", help="remove what is damaged")
    return parser


def _run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    return int(options.run(options))


def _store(root: str) -> Store:
    if not Path(root).is_dir():
        raise UserError(f"there is no store at {root}: run pi3nn-run first, or give --store")
    return Store(root)


def _records(options: argparse.Namespace) -> int:
    from pi3nn.results import records

    # A filter behind --store is a filter still, unless there is a folder of that name.
    late = [text for text in options.store if "=" in text and not Path(text).is_dir()]
    stores = [_store(root) for root in options.store if root not in late]
    return _shown(lambda: records.table(stores, [*options.filters, *late]), options, "record")


def _shown(make: Callable[[], pd.DataFrame], options: argparse.Namespace, noun: str) -> int:
    """A table, in the file that was asked for or on the screen."""
    from pi3nn.results import frames, tables

    if options.output is None:
        tables.inert(make()).to_csv(sys.stdout, index=False)
        return 0
    frames.check_writable(options.output)
    table = make()
    frames.write(table, options.output)
    print(f"{counted(len(table), noun)} in {options.output}")
    return 0


def _predictions(options: argparse.Namespace) -> int:
    from pi3nn.results import predictions

    return _shown(lambda: predictions.table(options.folder, options.filters), options, "row")


def _score(options: argparse.Namespace) -> int:
    from pi3nn.results import scores

    print("\n".join(scores.lines(options.file, options.keys)))
    return 0


def _mlflow(options: argparse.Namespace) -> int:
    from pi3nn.results import mlflow_runs

    sent, count = mlflow_runs.send(options.folder, options.uri)
    known = f", {count - sent} were there already" if sent < count else ""
    print(f"{counted(sent, 'scenario')} of {options.folder} sent to {options.uri}{known}")
    return 0


def _page(options: argparse.Namespace) -> int:
    from pi3nn.results import run_notes, run_page

    output = options.output or options.folder / "report.html"
    table = options.folder / "table.md"
    shown = table.read_text(encoding="utf-8") if table.is_file() else ""
    text = run_page.page(run_notes.read(options.folder), shown)
    try:
        atomic.write_text(output, text)
    except OSError as error:
        raise UserError(f"can't write {output}: {error.strerror}") from error
    print(f"the pictures of {options.folder} are in {output}")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from pi3nn.paper.run_verdicts import beside_paper
    from pi3nn.results import sweep_notes, sweep_progress, sweep_table

    found = sweep_progress.progress(sweep_notes.read(options.folder))
    if found.done:
        sweep_table.write(found.done, options.folder, beside_paper, lambda *_: False)
        print()
    print("\n".join(found.lines()))
    return 1 if found.to_do else 0


def _paper(options: argparse.Namespace) -> int:
    from pi3nn.paper import report

    protocols = [options.protocol] if options.protocol else report.PROTOCOLS
    if options.compare:
        return _side_by_side(options, protocols)
    if options.output:
        raise UserError("--output is for --compare: a report is written into the folder itself")
    page = report.write(options.folder, protocols)
    print((options.folder / "summary.md").read_text(encoding="utf-8"))
    print(f"the whole report is {page}; tables, figures and verdicts.csv are beside it")
    return 0


def _side_by_side(options: argparse.Namespace, protocols: Sequence[str]) -> int:
    from pi3nn.paper.report import compare

    folders = (options.folder, options.compare)
    found = compare.compared(*folders, protocols)
    text = compare.in_words(found, *folders)
    if options.output is None:
        print(text, end="")
        return 0
    compare.write(found, text, options.output)
    print(f"{options.folder} and {options.compare} are side by side in {options.output}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from pi3nn.store import upkeep

    store = _store(options.store)
    found = upkeep.verify(store)
    for name in found.removed:
        print(f"removed {name}: left behind by a run that was killed")
    sealed = upkeep.seal(store, found) if options.seal else 0
    for sentence in found.sentences:
        print(f"damaged {sentence}")
    if options.seal:
        print(f"sealed: {counted(sealed, 'member')} of an older version")
    elif found.unsealed:
        unsealed = counted(len(found.unsealed), "member")
        print(f"without checksums: {unsealed} of an older version; --seal adds them")
    damaged = found.members(store)
    if options.clear:
        for name in upkeep.clear(store, found):
            print(f"removed {name}: damaged, or replaced since")
    elif found.aside:
        aside = counted(len(found.aside), "damaged file")
        print(f"kept in {store.aside}: {aside}; --clear removes them")
    whole = set(store.keys()) if options.clear else set(store.keys()) - damaged
    print(f"{counted(len(whole), 'whole member')}, {len(damaged)} damaged")
    return 1 if found.sentences and not options.clear else 0

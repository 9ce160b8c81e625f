"""``pi3nn-report``: tables, pictures and reports of what was run. Never trains, never imports torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pi3nn import atomic
from pi3nn.cli.main import parser_of, run_command
from pi3nn.errors import UserError
from pi3nn.store import Store

_EXAMPLES = """\
examples:
  pi3nn-report records                                    all records of ./results/runs as CSV
  pi3nn-report records dataset=boston set=test --output boston.csv
  pi3nn-report records method=pi3nn hidden=100 scaling=full --output full.parquet
  pi3nn-report records gamma=0.95 --store results/runs elsewhere/runs   two stores as one
  pi3nn-report run results/uci/boston/pi3nn-paper         one page of pictures: report.html in it
  pi3nn-report paper                                      the paper, cell by cell: results/paper/report.html
  pi3nn-report paper elsewhere --protocol released        from other exported records, one protocol only
  pi3nn-report verify                                     check the store, clear what killed runs left

A record is one member, one evaluation set and one level; docs/records.md explains its columns.
A filter is column=value, or column=value1,value2; any key of the configuration will do, too."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    run_command("pi3nn-report", _run, arguments)


def _parser() -> argparse.ArgumentParser:
    about = "Read what was run: the store of trained members, and exported records."
    parser = parser_of("pi3nn-report", about, _EXAMPLES)
    commands = parser.add_subparsers(required=True, metavar="records | run | paper | verify")
    records = commands.add_parser(
        "records", help="records as CSV, one row per member, set and level"
    )
    records.set_defaults(run=_records)
    add = records.add_argument
    add("filters", nargs="*", metavar="column=value")
    add("--output", metavar="FILE", help="*.csv or *.parquet (default: the screen)")
    add("--store", nargs="+", default=["results/runs"], help="default: results/runs")
    run = commands.add_parser("run", help="one page with the pictures of a run, as HTML")
    run.set_defaults(run=_page)
    run.add_argument("folder", type=Path, help="where pi3nn-run put its tables")
    run.add_argument("--output", type=Path, metavar="FILE", help="default: report.html in it")
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
    verify = commands.add_parser("verify", help="check a store, clear what killed runs left behind")
    verify.set_defaults(run=_verify)
    verify.add_argument("--store", default="results/runs", help="default: results/runs")
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
    table = records.table(stores, [*options.filters, *late])
    if options.output is None:
        table.to_csv(sys.stdout, index=False)
    else:
        records.write(table, Path(options.output))
        print(f"{len(table)} records in {options.output}")
    return 0


def _page(options: argparse.Namespace) -> int:
    from pi3nn.results import run_page

    output = options.output or options.folder / "report.html"
    text = run_page.page(options.folder)
    try:
        atomic.write_text(output, text)
    except OSError as error:
        raise UserError(f"can't write {output}: {error.strerror}") from error
    print(f"the pictures of {options.folder} are in {output}")
    return 0


def _paper(options: argparse.Namespace) -> int:
    from pi3nn.paper import report

    protocols = [options.protocol] if options.protocol else report.PROTOCOLS
    page = report.write(options.folder, protocols)
    print((options.folder / "summary.md").read_text(encoding="utf-8"))
    print(f"the whole report is {page}; tables, figures and verdicts.csv are beside it")
    return 0


def _verify(options: argparse.Namespace) -> int:
    store = _store(options.store)
    removed, damaged = store.verify()
    for name in removed:
        print(f"removed {name}: left behind by a run that was killed")
    for sentence in damaged:
        print(f"damaged {sentence}")
    print(f"{len(store.keys()) - len(damaged)} members are whole, {len(damaged)} damaged")
    return 1 if damaged else 0

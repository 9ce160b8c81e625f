"""``pi3nn-data``: what data there is, getting it, checking it, looking at it."""

from __future__ import annotations

import argparse
import io
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi3nn.cli.main import parser_of, run_command
from pi3nn.errors import UserError, counted

if TYPE_CHECKING:
    from pi3nn.data.base import Column, Dataset

_HELP = """\
The data sets of pi3nn: what there is, getting it, checking it, looking at it.

commands:
  list             every data set: is it here, its size, its licence
  fetch NAME...    download what these data sets need; `all` for every one
  verify           check the SHA-256 of every file that is here; exit code 1 if one is wrong
  show NAME        first rows, ranges of all columns, source and licence
"""

_EXAMPLES = """\
examples:
  pi3nn-data list
  pi3nn-data fetch streamflow flight
  pi3nn-data fetch all
  pi3nn-data verify
  pi3nn-data show boston --plot boston.png

where files come from and go to:
  PI3NN_DATA_MIRROR   a folder or an address that is asked before the public ones
  PI3NN_CACHE         the folder for downloads (default: your cache folder)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: exit code 0, 1 when `verify` finds something wrong, 2 for a mistake."""
    run_command("pi3nn-data", _run, arguments)


def _run(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="pi3nn-data: %(message)s", stream=sys.stderr, force=True)
    logging.getLogger("pi3nn").setLevel(logging.INFO)
    return int(options.run(options))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("pi3nn-data", _HELP, _EXAMPLES)
    parser.usage = "pi3nn-data [-h] {list,fetch,verify,show} ..."
    commands = parser.add_subparsers(required=True, metavar="command", help=argparse.SUPPRESS)
    commands.add_parser("list", description="List every data set.").set_defaults(run=_list)
    fetch = commands.add_parser("fetch", description="Download what data sets need.")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="a data set, or all")
    fetch.set_defaults(run=_fetch)
    verify = commands.add_parser("verify", description="Check every file that is here.")
    verify.set_defaults(run=_verify)
    show = commands.add_parser("show", description="Look at a data set.")
    show.add_argument("name", metavar="NAME", help="a data set")
    show.add_argument(
        "--plot", type=Path, metavar="FILE.png", help="draw the target's histogram into this file"
    )
    show.set_defaults(run=_show)
    return parser


def _list(_options: argparse.Namespace) -> int:
    from pi3nn import data

    _print_table([("NAME", "HERE", "SIZE", "LICENCE", "WHAT"), *map(_line, data.ready())])
    return 0


def _line(name: str) -> tuple[str, ...]:
    """One row of the list: name, here, size, licence, what it is."""
    from pi3nn import data, paths
    from pi3nn.data import download

    with (paths.configs() / "dataset" / f"{name}.yaml").open(encoding="utf-8") as file:
        what = file.readline().lstrip("# ").rstrip(".\n")
    settings = data.settings(name)
    wanted = _downloads(settings)
    if not wanted:
        try:
            facts = data.source(settings.source).load(settings).facts
        except UserError:
            return name, "damaged", "?", "?", f"{what} (see pi3nn-data verify)"
        size = sum((paths.bundled_data() / file).stat().st_size for file in facts.files)
        here = "bundled" if facts.files else "generated"
        return name, here, _size(size), _short(facts.licence), what
    entries = [download.registry()[file] for file in wanted]
    there = [paths.cache() / file for file in wanted if download.is_here(file)]
    sizes = [entry.bytes for entry in entries if entry.bytes is not None]
    if len(sizes) < len(wanted):  # not known in advance: what is here so far
        sizes = [path.stat().st_size for path in there]
    here = "yes" if len(there) == len(wanted) else f"{len(there)} of {len(wanted)} files"
    return name, here if there else "no", _size(sum(sizes)), _short(entries[0].licence), what


def _downloads(settings: Any) -> Sequence[str]:
    """The files that a data set is downloaded from; none of those that are bundled or generated."""
    from pi3nn import data

    source = data.source(settings.source)
    return source.downloads(settings) if hasattr(source, "downloads") else []


def _short(licence: str) -> str:
    """The licence without its explanation, which `show` gives."""
    return licence.split(";")[0].split(" (")[0]


def _fetch(options: argparse.Namespace) -> int:
    from pi3nn import data
    from pi3nn.data import download

    names = data.ready() if "all" in options.names else options.names
    chosen = {name: data.settings(name) for name in names}  # a wrong name, before any download
    code = 0
    for name, settings in chosen.items():
        try:
            wanted = _downloads(settings)
            for file in wanted:
                path = download.fetch(file)
                print(f"{name}: {path} ({_size(path.stat().st_size)})", flush=True)
        except UserError as error:
            # The other data sets can still be fetched.
            print(f"pi3nn-data: {error}", file=sys.stderr)
            code = 2
        else:
            if not wanted:
                print(f"{name}: nothing to download", flush=True)
    return code


def _verify(_options: argparse.Namespace) -> int:
    from pi3nn import paths
    from pi3nn.data import bundled, download

    results = {}
    for name in bundled.checksums():
        try:
            bundled.read(name)
            results[name] = "ok"
        except UserError as error:
            results[name] = f"WRONG: {error}"
    for name in download.registry():
        path = paths.cache() / name
        if path.is_file():
            results[name] = "ok" if download.is_here(name) else _wrong(name, path)
    _print_table(list(results.items()))
    wrong = [name for name, result in results.items() if result != "ok"]
    if wrong:
        print(f"{len(wrong)} of {len(results)} files are wrong: {', '.join(wrong)}")
        return 1
    print(f"{counted(len(results), 'file')} here, all with the right SHA-256")
    return 0


def _wrong(name: str, path: Path) -> str:
    from pi3nn.data import download

    if download.expected_sha256(name) is None:
        return f"WRONG: {path} has no recorded SHA-256: fetch it again"
    return f"WRONG: {path} has another SHA-256 than it should: delete it and fetch it again"


def _show(options: argparse.Namespace) -> int:
    from pi3nn import data

    dataset = data.open_dataset(options.name)
    table, facts = dataset.table(), dataset.facts
    print(f"{facts.name}: {facts.title}\n\nfirst of {len(table)} rows")
    print(table.head().to_string(line_width=100), "\n")
    described = {column.name: column for column in (*facts.inputs, facts.target)}
    ranges: list[tuple[str, ...]] = [("COLUMN", "MIN", "MEAN", "MAX", "UNIT", "MEANING")]
    for name in table:
        values = table[name]
        numbers = (f"{value:.5g}" for value in (values.min(), values.mean(), values.max()))
        ranges.append((str(name), *numbers, *_words(described.get(str(name)), facts.target)))
    _print_table(ranges)
    print(f"\nsource    {facts.source}\nlicence   {facts.licence}\ncitation  {facts.citation}")
    for file, checksum in facts.files.items():
        print(f"file      {file}  SHA-256 {checksum}")
    if options.plot:
        _plot(dataset, options.plot)
        print(f"picture   {options.plot}")
    return 0


def _words(column: Column | None, target: Column) -> tuple[str, str]:
    if column is None:
        return "", "(no input)"
    return column.unit, f"{column.meaning} (target)" if column is target else column.meaning


def _plot(dataset: Dataset, path: Path) -> None:
    from matplotlib.figure import Figure

    target = dataset.facts.target
    values = dataset.table()[target.name].dropna()
    # A few far-away values would squeeze all others into one bar: the outer bars hold them.
    ends = values.quantile([0.001, 0.999])
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.hist(values.clip(*ends), bins=60, color="tab:blue")
    axes.set_title(dataset.facts.title, fontsize="medium")
    axes.set_xlabel(f"{target.meaning} [{target.unit}]" if target.unit else target.meaning)
    axes.set_ylabel("rows; the outer bars hold all beyond")
    picture = io.BytesIO()
    try:
        figure.savefig(picture, format=path.suffix.lstrip(".") or "png", dpi=150)
        path.write_bytes(picture.getvalue())
    except (OSError, ValueError) as error:
        raise UserError(f"can't draw into {path}: {str(error).split(chr(10))[0]}") from error


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows as aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _size(n_bytes: float) -> str:
    if n_bytes == 0:
        return "-"
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"

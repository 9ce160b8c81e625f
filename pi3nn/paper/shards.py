"""The paper in shards: what `scripts/reproduce_paper` runs, one after the other.

A shard is one experiment, data set, method and protocol: the overrides of one ordinary ``pi3nn-run``.
Its results are files in ``<folder>/records/<protocol>/`` (``folder``: ``results/paper``), from which
alone tables, figures and the report are made (`pi3nn.paper.export` writes them):

``<experiment>-<dataset>-<method>.csv.gz``
    One row per member, level and evaluation set, in the order of the plan; floats have 7 significant
    digits; columns that are empty throughout are left out. Columns: those of ``docs/records.md``
    (`pi3nn.paper.records.COLUMNS`), ``budget`` (``full`` or ``quick``), then ``method.<name>`` for
    every hyper-parameter that differs within the shard. Shards of ``uci`` have the sets ``train`` and
    ``test``; those of the other experiments all sets, and what `pi3nn.paper.ood` measures beyond
    records:

    - ``width``: mean width in original units (all experiments)
    - ``score_mean``, ``score_std``: confidence as the paper's table has it, over the rows of the set;
      ``score_auroc``, ``score_fpr95``: width as a detector against ``test`` (cubic10d), ``rank4``
      (flight) or ``train`` (streamflow, ``test`` only) rows
    - ``between_levels``: rows where an interval sticks out of that of a higher level; in the rows of
      the highest level, where there is more than one
    - ``inside``, ``left``, ``right``, ``ratio``: widths on [-4, 4], at -7 and at 7, and the growth
      (cubic1d, set ``line``)
    - ``nse``, ``kge``; ``high_width``, ``high_picp``: on the highest flows (streamflow)
    - ``distance.<input>``: how far the set's mean is from the training rows' (flight)

``<experiment>-<dataset>-<method>.npz``
    What the experiment's figures show of the shard's first member, float32, in original units
    (cubic1d, cubic10d, streamflow).

``provenance.json``
    ``{"protocol", "budget", "shards": {<shard>: {"members", "failed", "seconds" (of training, one core),
    "date", "commits", "versions", "python", "cpu", "cores", "note"}}}``.

A shard whose CSV is there is done, with or without the store it came from.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.errors import UserError
from pi3nn.paper.ood.reports import REPORTS, Report
from pi3nn.paper.ood.runs import Runs
from pi3nn.paper.records import COLUMNS, rounded
from pi3nn.store import Arrays

PROTOCOLS = ("paper", "released")
BUDGETS = ("full", "quick")
FOLDERS = {"full": "results/paper", "quick": "results/paper-quick"}

SMALL = ("yacht", "boston", "energy", "concrete", "wine")
LARGE = ("power", "kin8nm", "naval", "protein")
SIX = ("pi3nn", "pi3nn_no_ood", "qd", "piven", "sqr", "der")

SETS = ("train", "test")  # what is kept of UCI data

# Beside the data sets of the paper: names of their own, with what makes them.
OWN_NAMES = {
    "cubic1d_heavy": ("dataset=cubic1d", "dataset.name=cubic1d_heavy", "dataset.noise=heavy")
}


@dataclass(frozen=True)
class Shard:
    """One experiment, data set, method and protocol.

    ``own`` are the overrides beyond these four names; ``note`` says what a reader must know of them.
    """

    experiment: str
    dataset: str
    method: str
    protocol: str
    budget: str
    own: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.experiment}-{self.dataset}-{self.method}"

    @property
    def overrides(self) -> list[str]:
        """What ``pi3nn-run`` would be given."""
        data = OWN_NAMES.get(self.dataset, (f"dataset={self.dataset}",))
        names = [f"experiment={self.experiment}", *data, f"method={self.method}"]
        return [*names, f"protocol={self.protocol}", *self.own]


def of_paper(protocol: str, budget: str = "full") -> list[Shard]:
    """All shards of a protocol, the cheap and important ones first."""
    uci = [
        *_uci(SMALL, ("pi3nn", "der", "qd", "piven"), protocol, budget),
        *_uci(LARGE[:-1], ("pi3nn",), protocol, budget),
    ]
    slow = [
        *_uci(SMALL, ("sqr",), protocol, budget),
        *_uci(LARGE[:-1], ("qd", "der", "piven"), protocol, budget),
        *_uci(LARGE[-1:], ("pi3nn", "der", "qd", "piven"), protocol, budget),
        *_uci(LARGE, ("sqr",), protocol, budget),
    ]
    if protocol == "released":
        slow += _uci(SMALL, ("sqr_free",), protocol, budget)
    return [*uci, *_out_of_distribution(protocol, budget), *slow]


def selected(protocol: str, budget: str, patterns: Sequence[str]) -> list[Shard]:
    """The shards whose name fits one of the patterns, such as ``uci-*-pi3nn``; no pattern: all.

    Raises
    ------
    UserError
        If none does.
    """
    found = [
        shard
        for shard in of_paper(protocol, budget)
        if not patterns or any(fnmatch.fnmatch(shard.name, pattern) for pattern in patterns)
    ]
    if not found:
        raise UserError(
            f"no shard of {protocol} is named {' or '.join(patterns)}: --list shows their names"
        )
    return found


def _uci(
    datasets: tuple[str, ...], methods: tuple[str, ...], protocol: str, budget: str
) -> list[Shard]:
    return [_uci_shard(data, method, protocol, budget) for data in datasets for method in methods]


def _uci_shard(dataset: str, method: str, protocol: str, budget: str) -> Shard:
    own, notes = [], []
    if method == "sqr" and protocol == "released" and dataset in LARGE:
        notes.append("the released grid of 405 runs is cut to the setting that the paper names")
    if budget == "quick":
        seeds = "seeds=[10,20]" if protocol == "released" else "seeds=[1,2]"
        long = (method, protocol) == ("pi3nn", "released")  # up to 500,000 steps
        own += ["splits=[1,2]", seeds, *(("method.hidden=50",) if long else _QUICK_GRIDS[method])]
        notes.append("quick: 2 splits, 2 seeds, a part of the grid")
        if dataset in LARGE:
            own.append("dataset.limit=1000")
            notes.append("1000 rows of the set")
        if method.startswith("sqr"):
            notes.append("a tenth of the epochs")
    return Shard("uci", dataset, method, protocol, budget, tuple(own), "; ".join(notes))


_TWO_WIDTHS = "sweep={method.hidden: [50, 100]}"
_QUICK_GRIDS = {
    "pi3nn": (_TWO_WIDTHS,),
    "der": (_TWO_WIDTHS,),
    "qd": ("method.hidden=50", "method.soften=160"),
    "piven": ("method.hidden=50", "method.sigma_in=0.2"),
    "sqr": (_TWO_WIDTHS, "method.epochs=500"),
    "sqr_free": ("method.hidden=50", "method.learning_rate=0.01", "method.epochs=500"),
}


# --- out of distribution -------------------------------------------------------------------------

# The paper shows one run of each; a run is cheap, so all are shown over ten seeds. The first is the
# one that figures show: of released runs the authors' own.
_FIRST_SEED = {("cubic10d", "released"): 12345, ("flight", "released"): 10}
_SEEDS = 10

_QUICK_ROWS = {  # the released slices of flights have the size they have
    ("cubic1d", "paper"): ("dataset.rows=1000",),
    ("cubic1d", "released"): ("dataset.rows=1000",),
    ("cubic10d", "paper"): ("dataset.rows=1000",),
    ("cubic10d", "released"): ("dataset.rows=1000",),
    ("flight", "paper"): ("dataset.train_rows=2000", "dataset.test_rows=2000"),
}
_QUICK_EPOCHS = {
    ("cubic10d", "qd"): 200,
    ("cubic10d", "sqr"): 500,
    ("flight", "piven"): 50,
    ("flight", "sqr"): 50,
}


def _out_of_distribution(protocol: str, budget: str) -> list[Shard]:
    pairs = [("cubic1d", "cubic1d"), ("cubic10d", "cubic10d"), ("streamflow", "streamflow")]
    if protocol == "paper" and budget == "full":
        # The paper's limitation 3, and a basin that comes along: neither was ever released.
        pairs += [("cubic1d", "cubic1d_heavy"), ("streamflow", "camels")]
    pairs += [("flight", "flight")]  # needs a download, and longer
    return [
        _ood_shard(experiment, dataset, method, protocol, budget)
        for experiment, dataset in pairs
        for method in SIX
    ]


def _ood_shard(experiment: str, dataset: str, method: str, protocol: str, budget: str) -> Shard:
    first = _FIRST_SEED.get((experiment, protocol), 1)
    seeds = [first, *(seed for seed in range(1, _SEEDS + 1) if seed != first)][:_SEEDS]
    if budget == "full":
        own = [f"seeds={_listed(seeds)}"]
        return Shard(experiment, dataset, method, protocol, budget, tuple(own), f"{_SEEDS} seeds")
    rows = _QUICK_ROWS.get((experiment, protocol), ())
    epochs = _QUICK_EPOCHS.get((experiment, method))
    own = [f"seeds={_listed(seeds[:1])}", *rows, *([f"method.epochs={epochs}"] if epochs else [])]
    note = "quick: one seed" + (", fewer rows" if rows else "")
    note += ", fewer epochs" if epochs else ""
    return Shard(experiment, dataset, method, protocol, budget, tuple(own), note)


def _listed(numbers: list[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"


# --- reading -------------------------------------------------------------------------------------


def records_folder(folder: Path, protocol: str) -> Path:
    """Where the files of a protocol's shards are."""
    return folder / "records" / protocol


def path(folder: Path, shard: Shard) -> Path:
    """The table of a shard: what says that it is done."""
    return records_folder(folder, shard.protocol) / f"{shard.name}.csv.gz"


def uci_records(folder: Path, protocol: str) -> pd.DataFrame:
    """Records of all UCI shards there are, one below the other; empty if there are none."""
    tables = [read(path(folder, shard)) for shard in _there(folder, protocol, uci=True)]
    known = [*COLUMNS, "budget"]
    if not tables:
        return pd.DataFrame(columns=known)
    table = pd.concat(tables, ignore_index=True)
    return table.reindex(columns=[*known, *(name for name in table if name not in known)])


def ood_reports(folder: Path, protocol: str) -> dict[str, Report]:
    """The reports of the other experiments, as ``pi3nn-run`` makes them of a store.

    By the name of the experiment: ``cubic1d``, ``cubic10d``, ``streamflow``, ``flight``; by that of
    the data set where it is not the experiment's own: ``cubic1d_heavy``, ``camels``. Those without a
    trained member are left out.
    """
    reports = {}
    for name, table in ood_tables(folder, protocol).items():
        first = table.iloc[0]
        prefix = records_folder(folder, protocol) / f"{first['experiment']}-{first['dataset']}"
        runs = Runs.of(table, functools.partial(_picture, prefix))
        if not runs.trained.empty:
            reports[name] = REPORTS[first["experiment"]](runs)
    return reports


def ood_tables(folder: Path, protocol: str) -> dict[str, pd.DataFrame]:
    """What `ood_reports` are made of: all methods of an experiment, one below the other."""
    tables: dict[str, list[pd.DataFrame]] = {}
    for shard in _there(folder, protocol, uci=False):
        own = shard.dataset == shard.experiment
        name = shard.experiment if own else shard.dataset
        tables.setdefault(name, []).append(read(path(folder, shard)))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def provenance(folder: Path, protocol: str) -> dict[str, Any]:
    """The content of ``provenance.json``; empty where there is none."""
    file = records_folder(folder, protocol) / "provenance.json"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(
            f"{folder} can't be read ({error.strerror}): give another folder"
        ) from error
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise _unreadable(file, error) from error
    return found


def read(file: Path) -> pd.DataFrame:
    """The table of one shard."""
    try:
        # A key is a name, though some consist of digits only.
        table = pd.read_csv(file, dtype={"key": str})
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise _unreadable(file, error) from error
    table = rounded(table)  # pandas may read the last bit another way
    return table.fillna({"reason": ""}) if "reason" in table else table.assign(reason="")


def _there(folder: Path, protocol: str, uci: bool) -> list[Shard]:
    shards = [shard for shard in of_paper(protocol) if (shard.experiment == "uci") == uci]
    return [shard for shard in shards if path(folder, shard).is_file()]


def _picture(prefix: Path, method: str) -> Arrays:
    path = Path(f"{prefix}-{method}.npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        table, reason = path.with_suffix(".csv.gz").name, getattr(error, "strerror", None) or error
        raise UserError(
            f"{path} can't be read ({reason}): delete {table} beside it, and scripts/reproduce_paper "
            "makes both again"
        ) from error


def _unreadable(file: Path, error: Exception) -> UserError:
    return UserError(
        f"{file} can't be read ({error}): delete it, and scripts/reproduce_paper makes it again"
    )

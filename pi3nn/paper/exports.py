"""Records of the paper's tasks, written out of the store and read back.

They are files in ``<folder>/records/<protocol>/`` (``folder``: ``results/paper``), from which alone
tables, figures and the report are made:

``<experiment>-<dataset>-<method>.csv.gz``
    One row per member, level and evaluation set, in the order of the plan; floats have 7 significant
    digits; columns that are empty throughout are left out. Columns: those of ``docs/records.md``
    (`pi3nn.results.records.COLUMNS`), ``budget`` (``full`` or ``quick``), then ``method.<name>`` for
    every hyper-parameter that differs within the task. Tasks of ``uci`` have the sets ``train`` and
    ``test``; those of the other experiments all sets, and what `pi3nn.paper.ood` measures beyond
    records:

    - ``width``: mean width in original units (all experiments)
    - ``score_mean``, ``score_std``: confidence as the paper's table has it, over the rows of the set;
      ``score_auroc``, ``score_fpr95``: width as a detector against ``test`` (cubic10d), ``rank4``
      (flight) or ``train`` (streamflow, ``test`` and ``control`` only) rows
    - ``between_levels``: rows where an interval sticks out of that of a higher level; in the rows of
      the highest level, where there is more than one
    - ``inside``, ``left``, ``right``, ``ratio``: widths on [-4, 4], at -7 and at 7, and the growth;
      ``smallest``: the smallest width on [-4, 4]; ``pinched``: 1 where that is below a third of the
      true noise's, else 0 (cubic1d, set ``line``)
    - ``score_y``, ``oracle_y``: interval scores in original units, of the method and of the true
      quantiles (cubic1d, set ``test``)
    - ``nse``, ``kge``; ``high_width``, ``high_picp``: on the highest flows (streamflow)
    - ``control_auroc``: width as a detector against the rows of ``control`` (streamflow, ``test`` only)
    - ``distance.<input>``: how far the set's mean is from the training rows' (flight)

``<experiment>-<dataset>-<method>.npz``
    What the experiment's figures show of the task's first member, float32, in original units
    (cubic1d, cubic10d, streamflow); one file for each variant (`pi3nn.paper.ood.variants`). Of
    streamflow, by day, also the precipitation (``background/precipitation``).

``provenance.json``
    ``{"protocol", "budget", "shards": {<task>: {"members", "failed", "seconds" (of training, one core),
    "date", "commits", "versions", "python", "cpu", "cores", "note"}}}``.

A task whose CSV is there is done, with or without the store it came from. Of a task that is cut into parts
each has its files, ``<experiment>-<dataset>-<method>-<part>``; tables and report are made of them when
all are there.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import gzip
import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.paper import tasks
from pi3nn.paper.ood import frame, variants
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.ood_tables import REPORTS, ExperimentReport
from pi3nn.paper.tasks import Task
from pi3nn.results.records import COLUMNS, of_members, rounded
from pi3nn.results.tables import swept_columns
from pi3nn.store import Arrays, Store

SETS = ("train", "test")  # what is kept of UCI data
Names = Collection[str] | None
"""Of tasks; None: of all."""


def write(
    folder: Path, task: Task, store: Store, keys: Sequence[str], levels: Sequence[float]
) -> Path:
    """Export a task whose members are all stored; returns the path of its table.

    The same store gives the same bytes. The table comes last: a task without it is not done.
    """
    file = path(folder, task)
    file.parent.mkdir(parents=True, exist_ok=True)
    check_budget(folder, task.protocol, task.budget)
    table = _table(task, store, keys, levels)
    for method in variants.named(table)["method"].unique():
        if picture := frame.picture(store, table, method):
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **picture)  # type: ignore[arg-type]
            name = f"{dataclasses.replace(task, method=method).name}.npz"
            atomic.write_bytes(file.with_name(name), buffer.getvalue())
    _note(folder, task, _origin(task, store, keys, table))
    text = table.dropna(axis="columns", how="all").to_csv(index=False, lineterminator="\n")
    atomic.write_bytes(file, gzip.compress(text.encode(), mtime=0))
    return file


def check_budget(folder: Path, protocol: str, budget: str) -> None:
    """Refuse to mix runs of two budgets in one folder."""
    exported = provenance(folder, protocol).get("budget", budget)
    if exported != budget:
        raise UserError(
            f"{records_folder(folder, protocol)} holds records of the {exported} budget: "
            f"choose another folder for the {budget} one with --output"
        )


def check_writable(records: Path) -> None:
    """Refuse a folder that can't take records before anything is trained for it."""
    try:
        records.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=records):
            pass
    except OSError as error:
        raise UserError(
            f"can't write to {records} ({error.strerror}): choose another folder with --output"
        ) from error


def _table(task: Task, store: Store, keys: Sequence[str], levels: Sequence[float]) -> pd.DataFrame:
    if task.experiment == "uci":
        records = of_members(store, keys, levels)
        records = records[records["set"].isin(SETS)]
        table = rounded(records.reindex(columns=[*COLUMNS, *swept_columns(records)]))
    else:
        table = frame.measured(store, keys, levels)
    # An empty reason is none.
    table = table.assign(reason=table["reason"].replace("", None))
    table.insert(len(COLUMNS), "budget", task.budget)
    return table


# --- provenance ----------------------------------------------------------------------------------


def _origin(task: Task, store: Store, keys: Sequence[str], table: pd.DataFrame) -> dict[str, Any]:
    """What is known of how the members of a task were trained."""
    members = table.drop_duplicates("key")
    facts = [store.provenance(key) for key in keys]
    first = facts[0]
    started = datetime.datetime.fromtimestamp(max(f["started"] for f in facts), datetime.UTC)
    commits = {f["commit"] + ("+" if f["dirty"] else "") for f in facts if f["commit"]}
    return {
        "members": len(members),
        "failed": int((members["status"] != "ok").sum()),
        "seconds": float(f"{members['seconds'].sum():.4g}"),
        "date": started.date().isoformat(),
        "commits": sorted(commits),
        **{name: first[name] for name in ("versions", "python", "cpu", "cores")},
        "note": task.note,
    }


def _note(folder: Path, task: Task, origin: dict[str, Any]) -> None:
    file = records_folder(folder, task.protocol) / "provenance.json"
    # Two that read, add and write at once would lose an entry.
    with atomic.alone(file.parent):
        noted = provenance(folder, task.protocol).get("shards", {})
        content = {
            "protocol": task.protocol,
            "budget": task.budget,
            "shards": dict(sorted({**noted, task.name: origin}.items())),
        }
        atomic.write_text(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


# --- reading -------------------------------------------------------------------------------------


def records_folder(folder: Path, protocol: str) -> Path:
    """Where the files of a protocol's tasks are."""
    return folder / "records" / protocol


def path(folder: Path, task: Task) -> Path:
    """The table of a task: what says that it is done."""
    return records_folder(folder, task.protocol) / f"{task.name}.csv.gz"


def exported(folder: Path, protocol: str, names: Names = None) -> list[Task]:
    """The tasks whose table is there, of those with parts all; of those with these names, if any are given."""
    every = tasks.in_folder(protocol)
    missing = {task.whole for task in every if not path(folder, task).is_file()}
    return [
        task
        for task in every
        if (names is None or task.name in names) and task.whole not in missing
    ]


def uci_records(folder: Path, protocol: str, names: Names = None) -> pd.DataFrame:
    """Records of all UCI tasks there are, one below the other; empty if there are none."""
    uci = [task for task in exported(folder, protocol, names) if task.experiment == "uci"]
    tables = [read(path(folder, task)) for task in uci]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.reindex(columns=list(dict.fromkeys([*COLUMNS, "budget", *table])))


def ood_reports(folder: Path, protocol: str, names: Names = None) -> dict[str, ExperimentReport]:
    """The reports of the other experiments, as ``pi3nn-run`` makes them of a store.

    By the name of the experiment: ``cubic1d``, ``cubic10d``, ``streamflow``, ``flight``; by that of
    the data set where it is not the experiment's own: ``cubic1d_heavy``, ``rock``, ``camels``. Those
    without a trained member are left out. A basin's report shows its control, too.
    """
    tables: dict[str, list[pd.DataFrame]] = {}
    for task in exported(folder, protocol, names):
        if task.experiment != "uci":
            tables.setdefault(task.dataset, []).append(read(path(folder, task)))
    runs = {}
    for name, of_methods in tables.items():
        table = pd.concat(of_methods, ignore_index=True)
        first = table.iloc[0]
        prefix = records_folder(folder, protocol) / f"{first['experiment']}-{first['dataset']}"
        of_name = Runs.of(table, functools.partial(_picture, prefix))
        if not of_name.trained.empty:
            runs[name] = of_name
    return {
        name: REPORTS[of_name.first.experiment](
            dataclasses.replace(of_name, control=runs.get(tasks.CONTROL.format(name)))
        )
        for name, of_name in runs.items()
    }


def provenance(folder: Path, protocol: str) -> dict[str, Any]:
    """The content of ``provenance.json``; empty where there is none."""
    file = records_folder(folder, protocol) / "provenance.json"
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(
            f"{folder} can't be read ({error.strerror}): give another folder"
        ) from error
    except ValueError as error:
        raise _unreadable(file, error) from error
    return content


def read(file: Path) -> pd.DataFrame:
    """The table of one task."""
    try:
        # A key is a name, though some consist of digits only.
        table = pd.read_csv(file, dtype={"key": str})
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise _unreadable(file, error) from error
    table = rounded(table)  # pandas may read the last bit another way
    return table.fillna({"reason": ""}) if "reason" in table else table.assign(reason="")


def _picture(prefix: Path, method: str) -> Arrays:
    path = Path(f"{prefix}-{method}.npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        table, reason = (
            f"{prefix.name}-{variants.recorded(method)}",
            getattr(error, "strerror", None),
        )
        raise UserError(
            f"{path} can't be read ({reason or error}): delete {table}.csv.gz beside it, and scripts/reproduce_paper "
            "makes both again"
        ) from error


def _unreadable(file: Path, error: Exception) -> UserError:
    return UserError(
        f"{file} can't be read ({error}): delete it, and scripts/reproduce_paper makes it again"
    )

"""Write the results of a shard out of the store; `pi3nn.paper.shards` says what the files are."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import gzip
import io
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.paper import shards
from pi3nn.paper.ood import frame
from pi3nn.paper.records import COLUMNS, of_members, rounded
from pi3nn.paper.shards import Shard
from pi3nn.paper.tables import swept_columns
from pi3nn.store import Store


def write(
    folder: Path, shard: Shard, store: Store, keys: Sequence[str], levels: Sequence[float]
) -> Path:
    """Export a shard whose members are all stored; returns the path of its table.

    The same store gives the same bytes. The table comes last: a shard without it is not done.
    """
    place = shards.path(folder, shard)
    place.parent.mkdir(parents=True, exist_ok=True)
    check_budget(folder, shard.protocol, shard.budget)
    for left in place.parent.glob(f"{atomic.TEMPORARY}*"):
        if atomic.abandoned(left):
            left.unlink()
    table = _table(shard, store, keys, levels)
    picture = frame.picture(store, table, shard.method)
    if picture:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **picture)  # type: ignore[arg-type]
        atomic.write_bytes(place.with_name(f"{shard.name}.npz"), buffer.getvalue())
    _note(folder, shard, _origin(shard, store, keys, table))
    text = table.dropna(axis="columns", how="all").to_csv(index=False, lineterminator="\n")
    atomic.write_bytes(place, gzip.compress(text.encode(), mtime=0))
    return place


def check_budget(folder: Path, protocol: str, budget: str) -> None:
    """Refuse to mix runs of two budgets in one folder."""
    known = shards.provenance(folder, protocol).get("budget", budget)
    if known != budget:
        raise UserError(
            f"{shards.records_folder(folder, protocol)} holds records of the {known} budget: "
            f"choose another folder for the {budget} one with --output"
        )


def check_place(where: Path) -> None:
    """Refuse a folder that can't take records before anything is trained for it."""
    try:
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=where):
            pass
    except OSError as error:
        raise UserError(
            f"can't write to {where} ({error.strerror}): choose another folder with --output"
        ) from error


def _table(
    shard: Shard, store: Store, keys: Sequence[str], levels: Sequence[float]
) -> pd.DataFrame:
    if shard.experiment == "uci":
        records = of_members(store, keys, levels)
        records = records[records["set"].isin(shards.SETS)]
        table = rounded(records.reindex(columns=[*COLUMNS, *swept_columns(records)]))
    else:
        table = frame.measured(store, keys, levels)
    # An empty reason is none.
    table = table.assign(reason=table["reason"].replace("", None))
    table.insert(len(COLUMNS), "budget", shard.budget)
    return table


# --- provenance ----------------------------------------------------------------------------------


def _origin(shard: Shard, store: Store, keys: Sequence[str], table: pd.DataFrame) -> dict[str, Any]:
    """What is known of how the members of a shard were trained."""
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
        "note": shard.note,
    }


def _note(folder: Path, shard: Shard, origin: dict[str, Any]) -> None:
    place = shards.records_folder(folder, shard.protocol) / "provenance.json"
    with _alone(place.parent):
        known = shards.provenance(folder, shard.protocol).get("shards", {})
        content = {
            "protocol": shard.protocol,
            "budget": shard.budget,
            "shards": dict(sorted({**known, shard.name: origin}.items())),
        }
        atomic.write_text(place, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time: two that read, add and write would lose an entry."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

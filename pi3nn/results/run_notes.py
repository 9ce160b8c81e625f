"""The note that a run leaves in its folder: which members it had, for whoever shows them later."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.results.account import Account
from pi3nn.store import Store

FILE = "run.json"
_SHOWN = ("config.json", "records.json", "predictions.npz")  # parts of members


@dataclass(frozen=True)
class Note:
    """What a run has in a store, and of one model of one's own table the account."""

    store: Store
    keys: list[str]
    levels: list[float]
    title: str = ""  # empty: what the members say
    account: Account | None = None


def leave(folder: Path, note: Note) -> None:
    """Write the note into `folder`."""
    content: dict[str, Any] = {
        "store": os.path.relpath(note.store.root, folder),  # the two may move together
        "keys": note.keys,
        "levels": note.levels,
    }
    if note.title:
        content["title"] = note.title
    if note.account:
        content["account"] = asdict(note.account)
    atomic.write_text(folder / FILE, json.dumps(content))


def read(folder: Path) -> Note:
    """The note in `folder`, of the members that are whole: a line says which are not.

    An account is of all of them, or there is none.

    Raises
    ------
    UserError
        When the folder is not that of a run, or none of its members is left.
    """
    content = _content(folder)
    store, all_keys = Store((folder / content["store"]).resolve()), list(content["keys"])
    whole = store.stored(all_keys, _SHOWN)  # which says what is damaged
    keys = [key for key in all_keys if key in whole]
    gone = sum(not store.index.copies(key) for key in all_keys)
    what = f"{gone} of {len(all_keys)} members of {folder} are no longer in {store.root}"
    if not keys:
        if not gone:
            what = f"every member of {folder} is damaged in {store.root}"
        raise UserError(f"{what}: run the same pi3nn-run command again")
    if gone:
        logging.getLogger("pi3nn").warning(
            f"{what} and are left out: the same pi3nn-run command trains them again"
        )
    account = content.get("account") if keys == all_keys else None
    return Note(
        store,
        keys,
        list(content["levels"]),
        content.get("title", ""),
        Account.from_plain(account) if account else None,
    )


def _content(folder: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return content
    except (OSError, ValueError) as error:
        jobs = sorted(path.parent for path in folder.glob(f"*/{FILE}"))
        if jobs:
            hint = (
                f"a sweep has one numbered folder for each job: give one of them, such as {jobs[0]}"
            )
        else:
            hint = "give the one that pi3nn-run names at its end"
        raise UserError(f"{folder} is not the folder of a run: {hint}") from error

"""Stores to look into, and to damage."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import yaml

from pi3nn.store.packs import Pack


def pack_of(root: Path) -> Path:
    """The only file of members in a store."""
    (file,) = root.glob("*.members")
    return file


def old_key(name: str) -> str:
    """A key as members have it; folders with other names are the user's."""
    return hashlib.sha256(name.encode()).hexdigest()[:20]


def old_member(root: Path, name: str, value: float = 1.0) -> Path:
    """A member as version 0.5 stored it, without checksums, under the key of a name."""
    folder = root / old_key(name)
    folder.mkdir(parents=True)
    result = {
        "member": {"dataset": "boston", "status": "ok", "seed": 1},
        "scalars": {},
        "records": [{"set": "test", "gamma": 0.95, "picp": value}],
    }
    config = {"method": {"name": "linear"}, "seed": 1}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "records.json").write_text(json.dumps(result))
    (folder / "provenance.json").write_text(json.dumps({"commit": None}))
    np.savez(folder / "predictions.npz", **{"test/y": np.arange(3, dtype=np.float32)})
    np.savez(folder / "weights.npz", w=np.ones(2))
    (folder / "DONE").touch()
    return folder


def flip_part(root: Path, key: str, name: str) -> None:
    """Change a bit in a part of a member."""
    for file in root.glob("*.members"):
        for _, mark in Pack(file).marks():
            if mark.key == key:
                flip(file, mark.parts[name][0] + mark.parts[name][1] // 2)


def flip(file: Path, place: int, bit: int = 0) -> None:
    """Change a bit of a file."""
    with file.open("r+b") as opened:
        opened.seek(place)
        (byte,) = opened.read(1)
        opened.seek(place)
        opened.write(bytes([byte ^ 1 << bit]))

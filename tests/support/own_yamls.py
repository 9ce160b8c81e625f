"""YAMLs as a user may have them, for ``--config-dir``."""

from __future__ import annotations

from pathlib import Path

MINE = """\
# PI3NN, smaller.
defaults:
  - pi3nn
  - _self_
name: mine
hidden: 30  # units of a hidden layer (our choice)
l1: 0.5
"""
HOMES = """\
defaults: [table, _self_]
name: homes
path: my.csv
target: price
"""


def own_folder(folder: Path, **yamls: str) -> str:
    """Write YAMLs by ``<group>_<name>`` into `folder`; the override that lets Hydra find them."""
    for key, text in yamls.items():
        group, _, name = key.partition("_")
        (folder / group).mkdir(parents=True, exist_ok=True)
        (folder / group / f"{name}.yaml").write_text(text, encoding="utf-8")
    return f"hydra.searchpath=['file://{folder}']"

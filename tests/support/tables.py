"""Tables as users have them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np
import pandas as pd


def homes(rows: int = 40) -> pd.DataFrame:
    """Prices of homes by a number, a category and a boolean; the same every time."""
    source = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "area": source.uniform(30, 200, rows).round(2),
            "city": source.choice(["Rome", "Bern", "Oslo"], rows),
            "new": source.random(rows) < 0.5,
            "price": source.normal(300, 50, rows).round(1),
        }
    )


def zipped(members: Mapping[str, bytes | str]) -> bytes:
    """An archive with these files; the same bytes at any time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()

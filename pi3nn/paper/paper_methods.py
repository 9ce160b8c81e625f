"""The methods of the paper: how tables name them, how figures draw them, how many runs are printed.

This is the only list of them. A method that is not in it goes by its own name and gets a colour of
its own all the same, so that nothing here has to change for a new one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperMethod:
    """One method; colours and markers can be told apart by colour-blind readers, too."""

    name: str
    title: str  # in the tables on UCI data
    ood_title: str = ""  # in those out of distribution; default: the same
    colour: str = ""
    marker: str = "o"
    runs: int = (
        0  # behind one printed cell of Table 1 (discrepancies 1.1 and 3.1), if there are any
    )
    column: str = ""  # its name in the paper's tables; default: its own


_ALL = (
    PaperMethod("pi3nn", "PI3NN", "PI3NN (with OOD)", "#0072b2", "o", 27),
    PaperMethod("pi3nn_no_ood", "PI3NN (no OOD)", "", "#56b4e9"),
    PaperMethod("pi3nn_fixed", "PI3NN, fixed targets", "PI3NN (with OOD), fixed targets", "#004466"),
    PaperMethod("pi3nn_no_ood_fixed", "PI3NN (no OOD), fixed targets", "", "#2a6f97"),
    PaperMethod("pi3nn_unpenalised", "PI3NN, no penalty", "PI3NN (with OOD), no penalty", "#5e3c99"),
    PaperMethod("pi3nn_no_ood_unpenalised", "PI3NN (no OOD), no penalty", "", "#b2abd2"),
    PaperMethod("qd", "QD", "", "#e69f00", "s", 243),
    PaperMethod("piven", "PIVEN", "", "#009e73", "^", 243),
    # The printed cells of SQR are over its whole grid (here `sqr_free`: 405 distinct runs, each listed
    # four times); the setting that the text names (`sqr`) has 27.
    PaperMethod("sqr", "SQR", "", "#cc79a7", "D", 27),
    PaperMethod("sqr_free", "SQR, whole grid", "", "#cc79a7", "D", 405, column="sqr"),
    PaperMethod("der", "DER", "", "#d55e00", "v", 27),
)  # fmt: skip
_BY_NAME = {method.name: method for method in _ALL}
_SPARE_COLOURS = ("#666666", "#8c564b", "#7f6000", "#5e3c99", "#1b7837", "#a50026")

NAMES = tuple(_BY_NAME)
UCI = ("pi3nn", "qd", "piven", "sqr", "der")  # Table 1, in its order
BASELINES = UCI[1:]
INTERVAL_METHODS = UCI[:-1]  # the paper does not count DER among them
OUT_OF_DISTRIBUTION = ("pi3nn", "pi3nn_no_ood", *BASELINES)  # Tables 2 and 3


def method(name: str) -> PaperMethod:
    """The method of that name; one that is not in the paper is named and drawn by default."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    # By its name, so that it is the same in every figure.
    colour = _SPARE_COLOURS[zlib.crc32(name.encode()) % len(_SPARE_COLOURS)]
    return PaperMethod(name, name, colour=colour)


def title(name: str) -> str:
    """A method's title in the tables on UCI data."""
    return method(name).title


def ood_title(name: str) -> str:
    """A method's title in the tables out of distribution."""
    return method(name).ood_title or method(name).title


def column(name: str) -> str:
    """A method's name in the paper's tables."""
    return method(name).column or name


def in_order(names: list[str]) -> list[str]:
    """Those of the paper first, in its order, then the others as they come."""
    return [n for n in NAMES if n in names] + [n for n in names if n not in NAMES]

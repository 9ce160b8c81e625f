from __future__ import annotations

import pandas as pd

from pi3nn.results import latex


def test_latex_escapes_what_latex_would_read_otherwise() -> None:
    text = latex.table(pd.DataFrame({"a_b": ["5 %", "1 ± 2"]}))
    assert r"a\_b" in text
    assert r"5 \%" in text
    assert r"1 $\pm$ 2" in text


def test_every_group_of_rows_has_a_rule_above() -> None:
    assert latex.tabular(["", "a"], [[["x", "1"], ["", "2"]], [["y", "3"]]]).splitlines() == [
        r"\begin{tabular}{ll}",
        r"\toprule",
        r" & a \\",
        r"\midrule",
        r"x & 1 \\",
        r" & 2 \\",
        r"\midrule",
        r"y & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_no_name_is_a_command_or_ends_a_cell_or_a_line() -> None:
    name = "\\input{/etc/passwd} & $x$ #1 ^2 ~ <b>\n\\\\ 5% a_b"
    cell = latex.table(pd.DataFrame({"name": [name]})).splitlines()[4].removesuffix(r" \\")
    assert cell == (
        r"\textbackslash{}input\{/etc/passwd\} \& \$x\$ \#1 \textasciicircum{}2 \textasciitilde{} "
        r"$<$b$>$ \textbackslash{}\textbackslash{} 5\% a\_b"
    )

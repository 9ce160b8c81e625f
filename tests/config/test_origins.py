"""``explain=true`` says where each value comes from, and that is where it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pi3nn import config
from pi3nn.config import origins
from pi3nn.config.document import leaves, merged
from tests.config.test_config import OF_A_USER, SENSIBLE
from tests.conftest import REPOSITORY
from tests.support.own_yamls import MINE, own_folder
from tests.support.runs import composed


@pytest.mark.parametrize("combination", SENSIBLE[::7], ids=" ".join)
def test_the_values_at_the_places_that_are_named_are_those_of_the_run(
    combination: tuple[str, ...],
) -> None:
    groups = ("experiment", "dataset", "method", "protocol")
    chosen = dict(zip(groups, combination, strict=True))
    typed = OF_A_USER.get(chosen["dataset"], ())
    cfg = composed(*(f"{group}={name}" for group, name in chosen.items()), *typed)
    resolved = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    assert isinstance(resolved, dict)
    written = leaves(merged(*(layer.values for layer in origins.layers(chosen))))
    values = {path: value for path, value in written.items() if not str(value).startswith("${")}
    of_run = leaves({str(key): value for key, value in resolved.items()})
    not_typed = {
        path: value for path, value in of_run.items() if path[-1] not in ("path", "target")
    }
    # ${method.bounds_l1} is what that key is.
    values |= {
        path: OmegaConf.select(cfg, other[1])
        for path, value in values.items()
        if (other := re.fullmatch(r"\$\{(method\.\w+)\}", str(value)))
    }
    assert {p: v for p, v in not_typed.items() if p in values and values[p] != v} == {}
    of_schema = {p for p in not_typed if p not in written and p[:-1] not in written}
    assert len(of_schema) < 8, "few values are defaults of the schema"


def rows(*overrides: str) -> dict[str, origins.Origin]:
    return {row.key: row for row in origins.origins(composed(*overrides), overrides)}


def test_every_key_is_there_once() -> None:
    cfg = composed("experiment=streamflow")
    keys = [row.key for row in origins.origins(cfg, ["experiment=streamflow"])]
    resolved = OmegaConf.to_container(cfg, enum_to_str=True)
    assert isinstance(resolved, dict)
    del resolved["sweep"]
    assert keys == [".".join(path) for path in leaves({str(k): v for k, v in resolved.items()})]


def place(row: origins.Origin) -> str:
    """The text in the line that is named."""
    file, line = row.place.split(":")
    return (REPOSITORY / file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_file_line_and_source_are_named() -> None:
    by_key = rows("dataset=concrete", "method=piven", "protocol=released")
    for key in ("method.epochs", "scaling", "method.penalty", "method.lambda_in", "unit", "levels"):
        assert key.removeprefix("method.") in place(by_key[key])
    assert by_key["method.epochs"].place.startswith("configs/settings/piven.yaml:")
    assert by_key["method.epochs"].source == "paper, appendix D.1"
    assert by_key["scaling"].source == "source: released"
    assert by_key["unit"].source == "discrepancies 1.1"
    assert by_key["method.kind"].place == "default"


def test_a_swept_key_has_all_its_values_and_the_place_of_the_sweep() -> None:
    swept = rows("dataset=boston")["method.hidden"]
    assert swept.value == "[50, 100, 200], swept"
    assert "method.hidden: [50, 100, 200]" in place(swept)


def test_values_of_an_alias_are_named_where_they_stand() -> None:
    steps = rows("dataset=wine", "protocol=released")["method.steps"]
    assert "steps: 1000" in place(steps)
    assert steps.source == "discrepancies 1.3"


def test_the_command_line_is_named() -> None:
    by_key = rows(
        "method.hidden=5", "++sweep={method.l1: [0.1, 0.2]}", "seeds=[3]", "protocol=released"
    )
    for key in ("method.hidden", "method.l1", "seeds", "protocol"):
        assert by_key[key].place == "command line"
    assert by_key["method.l1"].value == "[0.1, 0.2], swept"
    assert by_key["method.l2"].place != "command line"


def test_an_own_yaml_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    by_key = rows(own_folder(tmp_path / "my", method_mine=MINE), "method=mine")
    assert by_key["method.hidden"] == origins.Origin(
        "method.hidden", "30", "my/method/mine.yaml:6", "our choice"
    )
    assert by_key["method.steps"].place.startswith("configs/settings/pi3nn.yaml:")


@pytest.mark.parametrize(
    ("comment", "source"),
    [
        ("units (paper, appendix D.1)", "paper, appendix D.1"),
        ("at most (see above) (discrepancies 8.6)", "discrepancies 8.6"),
        ('rows (paper: "two years (2015)")', 'paper: "two years (2015)"'),
        ("source: released", "source: released"),
        ("fixed (it stays)", "fixed (it stays)"),
        ("", ""),
        ("word " * 40, "word " * 15 + "…"),
    ],
)
def test_the_source_is_what_a_comment_says_of_it(comment: str, source: str) -> None:
    assert origins._source(comment) == source


def test_the_lines_in_the_documentation_are_printed() -> None:
    text = (REPOSITORY / "docs" / "extending.md").read_text(encoding="utf-8")
    match = re.search(
        r"pi3nn-run ([^\n]* explain=true)\n```\n\n```text\n(.*?)```", text, flags=re.S
    )
    assert match
    overrides = match[1].split()
    printed = [" ".join(line.split()) for line in config.explain(composed(*overrides), overrides)]
    for line in match[2].splitlines():
        assert " ".join(line.split()) in printed

"""Models on disk: whole or refused, and nothing in them is ever executed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.models import model_files
from tests.support.models import SHORT, trained


@pytest.mark.parametrize("method", SHORT)
def test_a_loaded_model_says_of_the_test_rows_what_its_run_said(
    tmp_path: Path, method: str
) -> None:
    members, store = trained(tmp_path, method)
    saved = model_files.load(tmp_path / "model")
    split = members[0].split
    predicted = saved.model.at([0.8, 0.9])(split.sets["test"].x)
    scalars = store.result(members[0].key)["scalars"]
    for k, gamma in enumerate((0.8, 0.9)):
        member = next(m for m in members if m.config["gamma"] in (None, gamma))
        kept = store.predictions(member.key)
        bounds = [kept[f"test/{side}@{gamma}"] for side in ("lower", "upper")]
        lower, upper = np.minimum(*bounds), np.maximum(*bounds)
        for ours, theirs in ((predicted.lower, lower), (predicted.upper, upper)):
            scaled = (ours[:, 0, k] - scalars["y_mean"]) / scalars["y_std"]
            np.testing.assert_allclose(scaled, theirs, rtol=1e-5, atol=1e-5)
    assert saved.levels == [0.8, 0.9]
    assert saved.schema.target in members[0].dataset.table()


def test_a_model_with_a_setting_that_is_gone_is_loaded(tmp_path: Path) -> None:
    trained(tmp_path, "qd")
    rewrite(tmp_path / "model", lambda d: d["method"].update(decay_unit="step"))
    assert model_files.load(tmp_path / "model").model.kind == "qd"
    rewrite(tmp_path / "model", lambda d: d["method"].update(decay_unit="epoch"))
    with pytest.raises(UserError, match="train it again"):
        model_files.load(tmp_path / "model")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None], sign: bool = True) -> None:
    """Change the JSON of a model; with `sign` as someone would who knows how it is made."""
    path = folder / "model.json"
    description = json.loads(path.read_text())
    change(description)
    if sign:
        description["sha256"] = model_files._checksum(description)
    path.write_text(json.dumps(description))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    trained(folder)
    return folder / "model"


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in made.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def weights(folder: Path) -> Path:
    (path,) = folder.glob("*.safetensors")
    return path


def test_every_changed_byte_of_either_file_is_noticed(model: Path) -> None:
    source = np.random.default_rng(0)
    for path in (weights(model), model / "model.json"):
        content = path.read_bytes()
        for place in source.integers(0, len(content), 30):
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes(bytes(changed))
            if path.suffix == ".json" and json_equal(bytes(changed), content):
                continue  # another white space is no change
            with pytest.raises(UserError):
                model_files.load(model)
        path.write_bytes(content)
    model_files.load(model)


def json_equal(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_a_file_cut_off_anywhere_is_refused(model: Path) -> None:
    for path in (weights(model), model / "model.json"):
        content = path.read_bytes()
        for share in (0, 0.3, 0.99):
            path.write_bytes(content[: int(share * len(content))])
            with pytest.raises(UserError):
                model_files.load(model)
        path.write_bytes(content)


def test_another_format_is_refused_with_both_versions(model: Path) -> None:
    rewrite(model, lambda d: d.update(format=99, pi3nn="7.0"))
    with pytest.raises(UserError, match=r"format 99, made by pi3nn 7\.0; .* reads format 1"):
        model_files.load(model)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["method"].update(kind="os"),
        lambda d: d["method"].update(kind="../evil"),
        lambda d: d["method"].update(evil=1),
        lambda d: d.pop("scaling"),
        lambda d: d["scaling"][0].update(x_mean=[0.0]),
        lambda d: d.update(parts="many"),
        lambda d: d["schema"].update(columns=3),
        lambda d: d["weights"].update(file="../../elsewhere"),
    ],
)
def test_a_forged_description_is_refused_and_nothing_else_happens(model: Path, change: Any) -> None:
    rewrite(model, change)
    with pytest.raises(UserError):
        model_files.load(model)


def test_forged_weights_of_another_shape_are_refused(model: Path) -> None:
    from safetensors.numpy import load, save

    arrays = load(weights(model).read_bytes())
    arrays["0/state/weights"] = arrays["0/state/weights"][:, :2]
    content = save(arrays)
    checksum = hashlib.sha256(content).hexdigest()
    weights(model).write_bytes(content)
    rewrite(model, lambda d: d["weights"].update(sha256=checksum))
    with pytest.raises(UserError, match="not a whole model"):
        model_files.load(model).model.at([0.9])(np.zeros((1, 6)))


def test_a_folder_without_a_model_says_where_one_comes_from(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="save_model=true"):
        model_files.load(tmp_path)


def test_a_new_model_takes_the_place_of_the_old_one_whole(tmp_path: Path) -> None:
    trained(tmp_path, "pi3nn")
    trained(tmp_path, "linear", "force=true")
    assert model_files.load(tmp_path / "model").model.kind == "linear"
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_a_model_that_can_not_be_written_leaves_the_old_one(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = model_files.load(model)
    before = {file.name for file in model.iterdir()}
    saved.model.parts[0].scalars["freedom"] += 1  # another model

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        model_files.save(model, saved)
    assert {file.name for file in model.iterdir()} == before
    model_files.load(model)

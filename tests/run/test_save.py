"""Of a run that trains one model, that model is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.errors import UserError
from pi3nn.run import save
from pi3nn.run.member import members
from pi3nn.store import Store
from tests.support.models import trained
from tests.support.runs import composed, run


def test_a_run_of_several_models_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    several = members(composed("dataset=yacht", "method=linear", "splits=[1,2]", "seeds=[1,2]"))
    with pytest.raises(UserError, match="give splits=1 and seeds=1"):
        save.check(several, tmp_path, force=False)


def test_a_model_of_another_configuration_is_replaced_only_when_asked(tmp_path: Path) -> None:
    trained(tmp_path)
    trained(tmp_path)  # the same again
    before = (tmp_path / "model" / "model.json").read_bytes()
    with pytest.raises(UserError, match=r"another configuration.*hydra\.run\.dir=.*force=true"):
        trained(tmp_path, "linear", "splits=[2]")
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    other = members(composed("dataset=yacht", "method=linear", "splits=[2]", "seeds=[1]"))
    save.check(other, tmp_path / "model", force=True)


def test_a_failed_training_leaves_no_model(tmp_path: Path) -> None:
    rate = ("method.learning_rate=1e38", "method.steps=25", "method.hidden=8", "workers=1")
    cfg = composed("experiment=fit", "dataset=yacht", *rate, f"store={tmp_path / 'runs'}")
    stored, _ = run(cfg)
    with pytest.raises(UserError, match="no model is kept: the training failed"):
        save.save(stored, Store(cfg.store), [0.95], tmp_path / "model")
    assert not (tmp_path / "model").exists()

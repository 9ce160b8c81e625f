"""The layers of a network in order, and where their parameters lie."""

import pytest

from pi3nn.engine.shape import ROW_BLOCK, Shape, padded
from tests.support.networks import SHAPES, plain_network


def test_padding_is_to_whole_blocks() -> None:
    assert [padded(n) for n in (1, 31, 32, 33, 455)] == [32, 32, 32, 64, 480]


def test_layers_come_in_order_of_application() -> None:
    shape = Shape(3, 8, layers=2, outputs=2, front=True)
    assert shape.sizes == {"front": (3, 3), "hidden0": (3, 8), "hidden1": (8, 8), "out": (8, 2)}


@pytest.mark.parametrize("shape", SHAPES)
def test_slices_cover_every_parameter_once(shape: Shape) -> None:
    taken = sorted(i for part in shape.slices.values() for i in range(part.start, part.stop))
    assert taken == list(range(sum(p.numel() for p in plain_network(shape).parameters())))
    assert shape.columns % ROW_BLOCK == 0
    assert 0 <= shape.columns - len(taken) < ROW_BLOCK


@pytest.mark.parametrize("bad", [{"hidden": 0}, {"layers": 0}, {"activation": "gelu"}])
def test_senseless_shapes_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|relu or tanh"):
        Shape(**{"inputs": 2, "hidden": 3} | bad)  # type: ignore[arg-type]

"""What is left out of the rows of a step means all of them."""

import torch

from pi3nn.engine.native import StepRows
from pi3nn.engine.shape import Shape
from tests.support.networks import both_engines, normal


def test_rows_without_an_index_are_the_first_ones_in_order() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    x = normal(1, "x", torch.float32, 2, 40, 3)
    assert net.kernel is not None
    whole = net.kernel.forward(net.flat, StepRows(x))
    order = torch.arange(40).expand(2, 40).contiguous()
    assert torch.equal(net.kernel.forward(net.flat, StepRows(x, order)), whole)
    assert torch.equal(net.kernel.forward(net.flat, StepRows(x, count=7)), whole[:, :7])


def test_a_column_is_the_last_input_and_rows_are_passed_once_for_each_of_its_entries() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    x, column = normal(1, "x", torch.float32, 2, 9, 2), normal(1, "c", torch.float32, 2, 2, 9)
    assert net.kernel is not None
    passes = net.kernel.forward(net.flat, StepRows(x, column=column)).split(9, dim=1)
    for k, outputs in enumerate(passes):
        joined = torch.cat([x, column[:, k, :, None]], dim=-1)
        assert torch.equal(outputs, net.kernel.forward(net.flat, StepRows(joined)))

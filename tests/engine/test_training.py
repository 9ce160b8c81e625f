"""What is asked of a training, and how wide stacks are."""

import time
from dataclasses import replace

import pytest
import torch

from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import OnProgress, in_threads, stack_width, train
from tests.support.networks import mse, rows_for, started


def test_what_does_not_fit_the_stack_is_refused() -> None:
    net, rows = started(Shape(2, 3), [1, 2], torch.float32), rows_for([1, 2], 9, 2, torch.float32)
    recipe, sources = Recipe(learning_rate=0.1, steps=1), generators([1, 2], "batches")
    with pytest.raises(ValueError, match="1 generators"):
        train(net, rows, mse, recipe, sources[:1])
    with pytest.raises(ValueError, match="3 row sets"):
        train(net, rows_for([1, 2, 3], 9, 2, torch.float32), mse, recipe, sources)
    with pytest.raises(ValueError, match="shape"):
        train(net, rows, mse, replace(recipe, l1=torch.zeros(3)), sources)
    with pytest.raises(ValueError, match="hidden7"):
        train(net, rows, mse, replace(recipe, l1=0.1, penalised=("hidden7",)), sources)
    with pytest.raises(ValueError, match="float64"):
        train(net, rows_for([1, 2], 9, 2, torch.float64), mse, recipe, sources)


def test_stacks_are_narrower_the_more_a_step_takes() -> None:
    widths = [
        stack_width(Shape(13, hidden), rows, "torch")
        for rows, hidden in [(100, 50), (100, 200), (455, 200), (7372, 200)]
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] >= 32
    assert widths[-1] == 2


def test_stacks_of_the_native_engine_are_wider() -> None:
    native, torch_ = (stack_width(Shape(13, 200), 455, engine) for engine in ("native", "torch"))
    assert native > 4 * torch_


def test_members_with_long_steps_do_not_wait_for_many_others() -> None:
    wide, narrow = (stack_width(Shape(16, 100), rows, "native") for rows in (455, 10740))
    assert wide > narrow == 2


def test_widths_are_for_an_engine_that_is_known() -> None:
    with pytest.raises(ValueError, match="auto"):
        stack_width(Shape(13, 200), 455, "auto")


def test_an_error_on_this_thread_ends_the_others() -> None:
    """As when a run is stopped: nobody trains on behind its back."""
    ended = []

    def training(part: int, on_progress: OnProgress | None) -> int:
        assert on_progress is not None
        try:
            for _ in range(1000):
                on_progress(0.1, 0.0)
                time.sleep(0.01)
        except BaseException:
            ended.append(part)
            raise
        return part

    def stop(share: float, loss: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(training, [0, 1, 2], stop)
    assert sorted(ended) == [0, 1, 2]


def test_parts_keep_their_order_and_their_errors() -> None:
    assert in_threads(lambda part, _: 2 * part, [3, 1, 2], None) == [6, 2, 4]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda part, _: 1 / part, [1, 0], None)

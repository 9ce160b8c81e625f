"""Threads are set in one place, and given back."""

import torch

from pi3nn.engine.threads import keep_freed_memory, one_thread, use_one_thread


def test_one_thread_inside_a_block_and_as_many_as_before_behind_it() -> None:
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    try:
        with one_thread():
            raise KeyError
    except KeyError:
        assert torch.get_num_threads() == 2


def test_one_thread_from_here_on() -> None:
    torch.set_num_threads(2)
    use_one_thread()
    assert torch.get_num_threads() == 1


def test_memory_settings_can_be_made_twice() -> None:
    keep_freed_memory()
    keep_freed_memory()

"""Streams are independent and repeatable."""

import torch

from pi3nn.engine.streams import Stream, generator, uniform_numbers


def test_streams_differ_by_seed_and_by_purpose_and_repeat() -> None:
    def first(seed: int, purpose: str) -> float:
        return float(torch.rand(1, generator=generator(seed, purpose), dtype=torch.float64))

    values = {first(s, p) for s in range(20) for p in ("init/f", "init/u", "batches/f")}
    assert len(values) == 60
    assert first(3, "init/f") == first(3, "init/f")


def test_a_stream_hands_out_the_same_to_a_member_whoever_leaves() -> None:
    def stream(seeds: list[int]) -> Stream:
        sources = [uniform_numbers(generator(s, "u"), (3,), torch.float64) for s in seeds]
        return Stream(sources, torch.device("cpu"))

    together, alone = stream([1, 2, 3]), stream([3])
    for step in range(600):
        if step == 5:
            together.select([1, 2])
        if step == 300:
            together.select([1])
        assert torch.equal(together.next()[-1], alone.next()[0])

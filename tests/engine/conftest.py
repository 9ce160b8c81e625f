"""Networks are compared to the last bit: on one thread, as they are trained."""

from collections.abc import Iterator

import pytest

from pi3nn.engine.threads import one_thread


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    with one_thread():
        yield

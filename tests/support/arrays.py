"""How near two results are, member by member."""

from torch import Tensor


def assert_near(ours: Tensor, theirs: Tensor, tolerance: float, what: str = "values") -> None:
    """Equal within `tolerance` of the largest entry of each member, the members being axis 0."""
    assert ours.shape == theirs.shape, what
    ours, theirs = ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)
    assert bool(theirs.isfinite().all()), what
    error, scale = (ours - theirs).abs().amax(dim=1), theirs.abs().amax(dim=1)
    # The smallest numbers of float32 may be rounded to zero.
    assert bool((error <= tolerance * scale + 1e-30).all()), f"{what}: {(error / scale).tolist()}"

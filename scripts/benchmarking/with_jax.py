"""Contestant (d): JAX, jit and scan, for one network and over members by vmap.

Importing this module needs JAX.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarking.cells import GAMMA, INPUTS, POOL, RATE, Cell, Runner, clock
from pi3nn.engine.training import stack_width


def in_jax(cell: Cell) -> dict[str, Runner]:
    """One network, and as many as we stack in PyTorch."""
    members = min(64, stack_width(cell.shape, cell.rows, "torch"))
    return {"jax": runner(cell, 1), "jax_vmap": runner(cell, members)}


def runner(cell: Cell, members: int) -> Runner:
    x, y = (jnp.asarray(values.numpy()) for values in cell.data(members))
    carry, rng = start(cell, members), np.random.default_rng(2)
    of_cell, length = partial(train, cell), scan_length(cell)
    if members == 1:
        fn = jax.jit(of_cell)
        x, y = x[0], y[0]
        carry = jax.tree.map(lambda v: v[0], carry)
    else:
        fn = jax.jit(jax.vmap(of_cell, in_axes=(0, 0 if cell.batched else None, 0, 0)))

    def run(steps: int) -> float:
        nonlocal carry
        calls = max(1, round(steps / length))
        begin = clock()
        for _ in range(calls):
            carry = fn(carry, draw(cell, members, rng), x, y)
        jax.block_until_ready(carry)
        return (clock() - begin) / calls / length / members

    return run


def scan_length(cell: Cell) -> int:
    """Steps of one call."""
    return 50 if cell.batched else 10 if cell.rows < 5000 else 2


def start(cell: Cell, members: int) -> Any:
    """Parameters, both moments of Adam and the number of steps so far."""
    rng = np.random.default_rng(1)
    sizes = {"w1": (INPUTS, cell.hidden), "b1": (cell.hidden,)}
    sizes |= {"w2": (cell.hidden, cell.outputs), "b2": (cell.outputs,)}
    p = {
        key: jnp.asarray(rng.uniform(-0.2, 0.2, (members, *size)), jnp.float32)
        for key, size in sizes.items()
    }
    zero = {key: jnp.zeros_like(value) for key, value in p.items()}
    return p, zero, dict(zero), jnp.zeros(members)


def draw(cell: Cell, members: int, rng: np.random.Generator) -> Any:
    """Fresh batches for every step of a scan, epoch after epoch, as the others draw them."""
    if not cell.batched:
        return None
    length, per_epoch = scan_length(cell), POOL // cell.rows
    epochs = -(-length // per_epoch)
    orders = np.tile(np.arange(POOL, dtype=np.int32), (members, epochs, 1))
    rng.permuted(orders, axis=2, out=orders)
    cut = orders[:, :, : per_epoch * cell.rows].reshape(members, -1, cell.rows)
    return jnp.asarray(cut[:, :length] if members > 1 else cut[0, :length])


def train(cell: Cell, carry: Any, batches: Any, x: Any, y: Any) -> Any:
    def one(carry: Any, batch: Any) -> Any:
        xs, ys = (x, y) if batch is None else (x[batch], y[batch])
        return step(LOSSES[cell.loss], carry, xs, ys), None

    return jax.lax.scan(one, carry, batches, length=scan_length(cell))[0]


def step(loss: Any, carry: Any, x: Any, y: Any) -> Any:
    """The gradient, and Adam."""
    p, mean, square, t = carry
    g = jax.grad(loss)(p, x, y)
    t = t + 1
    mean = jax.tree.map(lambda m, v: 0.9 * m + 0.1 * v, mean, g)
    square = jax.tree.map(lambda s, v: 0.999 * s + 0.001 * v * v, square, g)
    rate = RATE * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    p = jax.tree.map(lambda q, m, s: q - rate * m / (jnp.sqrt(s) + 1e-8), p, mean, square)
    return p, mean, square, t


def outputs(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def mean_square(p: Any, x: Any, y: Any) -> Any:
    return jnp.mean((outputs(p, x)[:, 0] - y) ** 2)


def quality_driven(p: Any, x: Any, y: Any) -> Any:
    z = outputs(p, x)
    upper, lower = z[:, 0], z[:, 1]
    captured = ((lower < y) & (y < upper)).astype(z.dtype)
    width = (jnp.abs(upper - lower) * captured).sum() / (captured.sum() + 0.001)
    soft = jax.nn.sigmoid(160.0 * (upper - y)) * jax.nn.sigmoid(160.0 * (y - lower))
    return width + 15.0 * len(y) ** 0.5 * jax.nn.relu(GAMMA - soft.mean()) ** 2


LOSSES = {"mse": mean_square, "qd": quality_driven}

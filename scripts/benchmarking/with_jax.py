"""Contestant (d): JAX, jit and scan with donated buffers, for one network and over members by vmap.

Importing this module needs JAX. Batches are drawn by NumPy, on the host: faster than permutations of
`jax.random` in the scan, which sort.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarking.cells import GAMMA, POOL, RATE, Cell, Runner, clock
from pi3nn.engine.training import stack_width


def in_jax(cell: Cell) -> dict[str, Runner]:
    """One network, and as many as we stack in PyTorch; drawing and, if a step draws, given."""
    members = min(64, stack_width(cell.shape, cell.rows, "torch"))
    return {**runners(cell, 1, "jax"), **runners(cell, members, "jax_vmap")}


def runners(cell: Cell, members: int, name: str) -> dict[str, Runner]:
    """The same compiled steps, with fresh draws for every call and with the same ones again."""
    x, y = (jnp.asarray(values.numpy()) for values in cell.data(members))
    of_cell, length = partial(train, cell), scan_length(cell)
    fn = jax.jit(jax.vmap(of_cell) if members > 1 else of_cell, donate_argnums=0)
    rng = np.random.default_rng(2)

    def all_or_one(values: Any) -> Any:
        return values if members > 1 else jax.tree.map(lambda v: v[0], values)

    def runner(given: bool) -> Runner:
        carry, data = all_or_one(start(cell, members)), all_or_one((x, y))
        same = all_or_one(draw(cell, members, rng))

        def run(steps: int) -> float:
            nonlocal carry
            calls = max(1, round(steps / length))
            begin = clock()
            for _ in range(calls):
                draws = same if given else all_or_one(draw(cell, members, rng))
                carry = fn(carry, draws, *data)
            jax.block_until_ready(carry)
            return (clock() - begin) / calls / length / members

        return run

    forms = {name: runner(given=False)}
    return forms | {f"{name}_given": runner(given=True)} if cell.draws else forms


def scan_length(cell: Cell) -> int:
    """Steps of one call."""
    return 50 if cell.batched else 10 if cell.rows < 5000 else 2


def start(cell: Cell, members: int) -> Any:
    """Parameters, both moments of Adam and the number of steps so far."""
    rng = np.random.default_rng(1)
    sizes = {"w1": (cell.inputs, cell.hidden), "b1": (cell.hidden,)}
    sizes |= {"w2": (cell.hidden, cell.outputs), "b2": (cell.outputs,)}
    p = {
        key: jnp.asarray(rng.uniform(-0.2, 0.2, (members, *size)), jnp.float32)
        for key, size in sizes.items()
    }
    mean, square = ({key: jnp.zeros_like(value) for key, value in p.items()} for _ in range(2))
    return p, mean, square, jnp.zeros(members)


def draw(cell: Cell, members: int, rng: np.random.Generator) -> Any:
    """For every step of a scan the rows of its batch, epoch after epoch, and SQR's quantiles; None
    where there are none. The leading axes are members and steps."""
    length, batch, tau = scan_length(cell), None, None
    if cell.batched:
        per_epoch = POOL // cell.rows
        orders = np.tile(np.arange(POOL, dtype=np.int32), (members, -(-length // per_epoch), 1))
        rng.permuted(orders, axis=2, out=orders)
        cut = orders[:, :, : per_epoch * cell.rows].reshape(members, -1, cell.rows)
        batch = jnp.asarray(cut[:, :length])
    if cell.loss == "sqr":
        tau = jnp.asarray(rng.random((members, length, cell.rows), dtype=np.float32))
    return batch, tau


def train(cell: Cell, carry: Any, draws: Any, x: Any, y: Any) -> Any:
    def one(carry: Any, draw: Any) -> Any:
        batch, tau = draw
        xs, ys = (x, y) if batch is None else (x[batch], y[batch])
        return step(partial(LOSSES[cell.loss], tau=tau), carry, xs, ys), None

    return jax.lax.scan(one, carry, draws, length=scan_length(cell))[0]


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


def mean_square(p: Any, x: Any, y: Any, tau: Any) -> Any:
    return jnp.mean((outputs(p, x)[:, 0] - y) ** 2)


def quality_driven(p: Any, x: Any, y: Any, tau: Any) -> Any:
    return captured_width(outputs(p, x), y)


def captured_width(z: Any, y: Any) -> Any:
    upper, lower = z[:, 0], z[:, 1]
    captured = ((lower < y) & (y < upper)).astype(z.dtype)
    width = (jnp.abs(upper - lower) * captured).sum() / (captured.sum() + 0.001)
    soft = jax.nn.sigmoid(160.0 * (upper - y)) * jax.nn.sigmoid(160.0 * (y - lower))
    return width + 15.0 * len(y) ** 0.5 * jax.nn.relu(GAMMA - soft.mean()) ** 2


def with_a_point(p: Any, x: Any, y: Any, tau: Any) -> Any:
    z = outputs(p, x)
    v = jax.nn.sigmoid(z[:, 2])
    return captured_width(z, y) + jnp.mean((v * z[:, 0] + (1 - v) * z[:, 1] - y) ** 2)


def pinball(p: Any, x: Any, y: Any, tau: Any) -> Any:
    error = outputs(p, jnp.concatenate([x, 12 * (tau - 0.5)[:, None]], axis=1))[:, 0] - y
    return jnp.mean(jnp.maximum((1 - tau) * error, -tau * error))


def evidential(p: Any, x: Any, y: Any, tau: Any) -> Any:
    z = outputs(p, x)
    nu, a, b = jax.nn.softplus(z[:, 1]), jax.nn.softplus(z[:, 2]) + 1, jax.nn.softplus(z[:, 3])
    error, w = y - z[:, 0], 2 * b * (1 + nu)
    nll = (
        0.5 * jnp.log(jnp.pi / nu)
        - a * jnp.log(w)
        + (a + 0.5) * jnp.log(nu * error**2 + w)
        + jax.lax.lgamma(a)
        - jax.lax.lgamma(a + 0.5)
    )
    return nll.mean() + 0.01 * ((jnp.abs(error) * (2 * nu + a)).mean() - 0.01)


LOSSES = {
    "mse": mean_square,
    "qd": quality_driven,
    "piven": with_a_point,
    "sqr": pinball,
    "der": evidential,
}

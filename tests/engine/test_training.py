"""The stacked loop does what a plain loop does, and a member is the same in any stack."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.batches import Rows, batch_indices, generator
from pi3nn.engine.dropout import Dropout
from pi3nn.engine.losses import Info
from pi3nn.engine.nets import Init, Shape, StackedMLP, initialise, one_thread, padded
from pi3nn.engine.optim import Penalties, Recipe, make_optimiser
from pi3nn.engine.training import Outcome, stack_width, train


@pytest.fixture(autouse=True)
def single_thread(each_engine: str) -> Iterator[None]:
    with one_thread():
        yield


def mse(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
    return ((outputs[..., 0] - y).square() * weights).sum(dim=1) / weights.sum(dim=1)


def wavy(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
    """A loss with functions whose last elements torch computes differently."""
    errors = (torch.sigmoid(3 * outputs) + torch.nn.functional.softplus(outputs)).sum(dim=2) - y
    return (errors.square() * weights).sum(dim=1) / info.rows


def started(shape: Shape, seeds: Sequence[int], dtype: torch.dtype) -> StackedMLP:
    net = StackedMLP(shape, len(seeds), dtype)
    initialise(net, Init(), [generator(s, "init") for s in seeds])
    return net


def rows_for(seeds: Sequence[int], n: int, inputs: int, dtype: torch.dtype) -> Rows:
    x = torch.stack([torch.randn(n, inputs, generator=generator(s, "x")) for s in seeds]).to(dtype)
    return Rows(x, x.sum(dim=2).sin())


def batch_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    return [generator(s, "batches") for s in seeds]


# Against a plain loop -------------------------------------------------------------------------


class Plain:
    """One network of torch.nn with an optimiser of torch.optim, started like a stack's member."""

    def __init__(self, net: StackedMLP, member: int, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.linears: dict[str, nn.Linear] = {}
        layers: list[nn.Module] = []
        for name, (fan_in, fan_out) in net.shape.sizes.items():
            linear = nn.Linear(fan_in, fan_out, dtype=net.flat.dtype)
            linear.weight.data = net.state()[f"{name}.weight"][member].T.clone()
            linear.bias.data = net.state()[f"{name}.bias"][member].clone()
            self.linears[name] = linear
            layers.append(linear)
            if name.startswith("hidden"):
                layers.append(nn.ReLU() if net.shape.activation == "relu" else nn.Tanh())
        self.model = nn.Sequential(*layers)
        decay = {"weight_decay": settings.get("weight_decay", 0.0)}
        parameters, rate = self.model.parameters(), settings["learning_rate"]
        self.optimiser: torch.optim.Optimizer = (
            torch.optim.SGD(parameters, lr=rate, **decay)
            if settings.get("optimiser") == "sgd"
            else torch.optim.Adam(parameters, lr=rate, eps=settings.get("eps", 1e-8), **decay)
        )
        factor, period = settings.get("decay", 1.0), settings.get("decay_steps", 1.0)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda t: factor ** (t / period)
        )

    def step(self, x: Tensor, y: Tensor) -> float:
        loss = (self.model(x)[:, 0] - y).square().mean()
        for name in self.settings.get("penalised", ("hidden0",)):
            weight = self.linears[name].weight
            loss = loss + self.settings.get("l1", 0.0) * weight.abs().sum()
            loss = loss + self.settings.get("l2", 0.0) * weight.square().sum()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.schedule.step()
        return loss.item()

    def flat(self, gradient: bool = False) -> Tensor:
        parts = []
        for linear in self.linears.values():
            for p in (linear.weight, linear.bias):
                values = p.grad if gradient else p.data
                assert values is not None
                parts.append(values.t().flatten())
        return torch.cat(parts)


def assert_near(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """Equal within `tolerance` of the largest entry."""
    assert (ours - theirs).abs().max() <= tolerance * theirs.abs().max()


def varied(state: int) -> tuple[Shape, dict[str, Any]]:
    """Shape and settings of one of many states: every combination of the options comes up."""
    bits = [bool(state >> i & 1) for i in range(6)]
    layers = 2 if bits[1] else 1
    shape = Shape(
        inputs=1 + state % 5,
        hidden=3 + state % 7,
        layers=layers,
        outputs=1 + state % 2,
        activation="tanh" if bits[0] else "relu",
        front=bits[2],
    )
    settings: dict[str, Any] = {"learning_rate": 0.01 + 0.001 * state}
    if bits[3]:
        settings |= {"l1": 0.02, "l2": 0.03, "penalised": tuple(shape.sizes)[: 1 + state % 3]}
    if bits[4]:
        settings |= {"weight_decay": 0.1}
    if bits[5]:
        settings |= {"decay": 0.8, "decay_steps": 3}
    return shape, settings


PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_loss_and_gradient_of_a_step_agree_with_a_plain_loop_at_50_states(
    dtype: torch.dtype, tolerance: float, optimiser: str
) -> None:
    for state in range(50):
        shape, settings = varied(state)
        settings["optimiser"] = optimiser
        seeds = [state, 100 + state, 200 + state]
        net, rows = started(shape, seeds, dtype), rows_for(seeds, 20 + state, shape.inputs, dtype)
        plain = [Plain(net, m, settings) for m in range(3)]
        losses = [p.step(rows.x[m], rows.y[m]) for m, p in enumerate(plain)]
        before = net.flat.clone()

        recipe = Recipe(steps=1, **settings)
        loss = mse(net(rows.x), rows.y, torch.ones_like(rows.y), _info())
        net.backward(loss)
        penalties = Penalties(replace(recipe, weight_decay=0.0), net, range(3))
        with torch.no_grad():
            penalties.apply(net.flat, net.grad, loss)
        outcome = train(net, rows, mse, recipe, batch_generators(seeds))

        used = shape.slices["out.bias"].stop
        for m in range(3):
            assert outcome.loss[m].item() == pytest.approx(losses[m], rel=tolerance)
            assert_near(net.grad[m, :used], plain[m].flat(gradient=True), tolerance)
            if optimiser == "sgd" or dtype == torch.float64:
                # Adam's first update is a sign: in float32 a gradient near 0 may take either.
                step = plain[m].flat() - before[m, :used]
                assert_near(net.flat[m, :used] - before[m, :used], step, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_updates_agree_with_torch_optim_at_50_states(
    dtype: torch.dtype, tolerance: float, optimiser: str
) -> None:
    """The same gradients, a few steps one after the other, so that moments are not zero."""
    for state in range(50):
        shape, settings = varied(state)
        settings |= {"optimiser": optimiser, "eps": 1e-7}
        net = started(shape, [1, 2], dtype)
        recipe = Recipe(steps=1, **settings)
        ours = make_optimiser(recipe, net, range(2), [1, 1])
        penalties = Penalties(replace(recipe, l1=0.0, l2=0.0), net, range(2))
        plain = Plain(net, 0, settings)
        source = generator(state, "gradients")
        for t in range(state % 7 + 1):
            gradients = {
                key: torch.randn(p.shape, generator=source).to(dtype)
                for key, p in net.parameters.items()
            }
            for key, columns in net.slices.items():
                net.grad[:, columns] = gradients[key].flatten(1)
                name, part = key.split(".")
                own = gradients[key][0]
                getattr(plain.linears[name], part).grad = own.T if part == "weight" else own[0]
            with torch.no_grad():
                penalties.apply(net.flat, net.grad, net.flat[:, 0])
                net.flat.sub_(ours.update(net.grad, t))
            plain.optimiser.step()
            plain.schedule.step()
        assert_near(net.flat[0, : len(plain.flat())], plain.flat(), tolerance)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.01},
        {"learning_rate": 0.05, "optimiser": "sgd", "decay": 0.9, "decay_steps": 50},
        {"learning_rate": 0.01, "l1": 0.001, "l2": 0.002, "weight_decay": 0.01, "decay": 0.8},
    ],
)
@pytest.mark.parametrize("batch", [None, 24])
def test_200_steps_agree_with_a_plain_loop_in_float64(
    settings: dict[str, Any], batch: int | None
) -> None:
    shape, seeds = Shape(4, 11, layers=2, activation="tanh", front=True), [3, 4, 5]
    net, rows = started(shape, seeds, torch.float64), rows_for(seeds, 50, 4, torch.float64)
    plain = [Plain(net, m, settings) for m in range(3)]
    recipe = Recipe(steps=200, batch=batch, **settings)
    outcome = train(net, rows, mse, recipe, batch_generators(seeds))
    for m, seed in enumerate(seeds):
        loss = math.nan
        for chosen in _batches(seed, 50, batch, 200):
            loss = plain[m].step(rows.x[m, chosen], rows.y[m, chosen])
        assert outcome.loss[m].item() == pytest.approx(loss, rel=1e-9)
        ours = net.flat[m, : len(plain[m].flat())]
        assert_near(ours, plain[m].flat(), 1e-9)


def _batches(seed: int, n: int, batch: int | None, steps: int) -> Iterator[Tensor]:
    """The rows of each step of a member, found out the long way."""
    if batch is None:
        yield from [torch.arange(n)] * steps
        return
    root = int(torch.randint(2**63 - 1, (1,), generator=generator(seed, "batches")))
    blocks = batch_indices(generator(root, "batches"), torch.arange(n), batch, "epoch", n)
    done = 0
    for block in blocks:
        for row in block:
            yield row[row < n]
            done += 1
            if done == steps:
                return


def _info() -> Info:
    return Info(0, torch.ones(1), None, {})


def test_row_weights_train_like_the_rows_themselves() -> None:
    """Weight 2 is a row taken twice, weight 0 a row left out."""
    shape = Shape(3, 5, activation="tanh")
    rows = rows_for([1, 2], 40, 3, torch.float64)
    weights = torch.ones(2, 40, dtype=torch.float64)
    weights[:, :10], weights[:, 10:15] = 0, 2
    weighted, listed = started(shape, [1, 2], torch.float64), started(shape, [1, 2], torch.float64)
    order = [*range(10, 40), *range(10, 15)]
    recipe = Recipe(learning_rate=0.01, steps=30)
    train(weighted, Rows(rows.x, rows.y, weights), mse, recipe, batch_generators([1, 2]))
    train(listed, Rows(rows.x[:, order], rows.y[:, order]), mse, recipe, batch_generators([1, 2]))
    assert_near(weighted.flat, listed.flat, 1e-9)


def test_dropout_uses_the_members_masks_on_hidden_activations() -> None:
    """A linear activation is not at hand, so compare with the masked network step by step."""
    shape, seed = Shape(3, 6, layers=2), 4
    net, rows = started(shape, [seed, 5], torch.float64), rows_for([seed, 5], 32, 3, torch.float64)
    reference = net.select([0, 1])
    recipe = Recipe(learning_rate=0.1, steps=1, optimiser="sgd", dropout=0.4)
    outcome = train(net, rows, mse, recipe, batch_generators([seed, 5]))
    root = int(torch.randint(2**63 - 1, (1,), generator=generator(seed, "batches")))
    mask = Dropout([0.4], (2, 32, 6), [generator(root, "dropout")], net.flat).next()[0]
    outputs = reference(rows.x, mask.unsqueeze(0).expand(2, -1, -1, -1).unbind(1))
    loss = mse(outputs, rows.y, torch.ones_like(rows.y), _info())
    reference.backward(loss)
    assert outcome.loss[0].item() == pytest.approx(loss[0].item(), rel=1e-12)
    assert_near(net.flat[0], reference.flat[0] - 0.1 * reference.grad[0], 1e-12)


# A member is the same in any stack ------------------------------------------------------------

HUGE = {torch.float32: 1e25, torch.float64: 1e200}


def trained(
    members: Sequence[int], shape: Shape, dtype: torch.dtype, n: int, **settings: Any
) -> tuple[Tensor, Outcome]:
    """Train some of seven members that differ in data, rate, penalty; number 2 diverges."""
    net, rows = started(shape, members, dtype), rows_for(members, n, shape.inputs, dtype)
    rates = torch.tensor([0.01, 0.1, HUGE[dtype], 0.003, 0.02, 0.5, 0.05], dtype=torch.float64)
    l1 = torch.tensor([0.01, 0.0, 0.1, 0.02, 0.01, 0.3, 0.0], dtype=torch.float64)
    settings = {"steps": 25, "decay": 0.9, "decay_steps": 7, "l2": 0.01} | settings
    own = list(members)
    if isinstance(settings["steps"], tuple):
        settings["steps"] = [settings["steps"][m] for m in own]
    recipe = Recipe(learning_rate=rates[own], l1=l1[own], **settings)
    uniforms = 0 if shape.inputs < 4 else 1
    outcome = train(
        net,
        replace(rows, x=rows.x[..., uniforms:]),
        wavy,
        recipe,
        batch_generators(members),
        column=drawn_column if uniforms else None,
        uniforms=uniforms,
    )
    return net.flat, outcome


def drawn_column(info: Info) -> Tensor:
    assert info.uniform is not None
    return info.uniform.transpose(1, 2)


CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "sgd": {"optimiser": "sgd"},
    "batches": {"batch": 33, "weight_decay": 0.1},
    "one row": {"batch": 1, "batching": "draw"},
    "dropout": {"batch": 10, "batching": "round", "dropout": 0.2, "decay_unit": "epoch"},
    "stopping": {"batch": 20, "stop_from": 5, "patience": 3},
    "own steps": {"steps": (25, 3, 9, 25, 1, 14, 9)},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("shape", "n"),
    [
        (Shape(3, 5, layers=2, outputs=3, activation="tanh"), 17),
        (Shape(5, 50), 101),
        (Shape(4, 21, activation="tanh", front=True), 455),
        (Shape(1, 1, layers=1, outputs=2), 64),
    ],
)
def test_a_member_in_a_stack_is_bitwise_the_member_alone(
    dtype: torch.dtype, case: str, shape: Shape, n: int
) -> None:
    whole, ends = trained(range(7), shape, dtype, n, **CASES[case])
    assert ends.diverged[2] >= 0
    for members in ([0], [1], [2], [5, 0], [3, 2, 4], [6, 5, 4, 3, 1], [4, 3, 6, 0, 1, 5]):
        flat, outcome = trained(members, shape, dtype, n, **CASES[case])
        assert torch.equal(flat, whole[members])
        assert torch.equal(outcome.loss.nan_to_num(7.0), ends.loss[members].nan_to_num(7.0))
        assert outcome.steps == [ends.steps[m] for m in members]
        assert outcome.diverged == [ends.diverged[m] for m in members]


def test_every_width_from_one_to_seven_gives_the_same_member() -> None:
    shape = Shape(5, 13)
    whole, _ = trained(range(7), shape, torch.float32, 77)
    for width in range(1, 8):
        assert torch.equal(trained(range(width), shape, torch.float32, 77)[0], whole[:width])


@pytest.mark.parametrize("shape", [Shape(13, 200, outputs=4), Shape(16, 100, 2), Shape(8, 200)])
def test_large_matrix_products_do_not_depend_on_the_stack_either(shape: Shape) -> None:
    seeds = range(20)
    rows = rows_for(seeds, 455, shape.inputs, torch.float32)
    recipe = Recipe(learning_rate=0.01, steps=4)
    whole = started(shape, seeds, torch.float32)
    train(whole, rows, wavy, recipe, batch_generators(seeds))
    for members in ([4], [19, 0], [3, 5, 7, 11, 13, 17]):
        net = started(shape, members, torch.float32)
        own = Rows(rows.x[members], rows.y[members])
        train(net, own, wavy, recipe, batch_generators(members))
        assert torch.equal(net.flat, whole.flat[members])


def test_more_threads_change_nothing() -> None:
    shape = Shape(5, 50)
    one, _ = trained(range(7), shape, torch.float32, 455)
    torch.set_num_threads(2)
    two, _ = trained(range(7), shape, torch.float32, 455)
    assert torch.equal(one, two)
    assert torch.get_num_threads() == 2


def test_row_counts_of_stack_mates_do_not_matter() -> None:
    """40 and 60 rows are both padded to 64."""
    shape, seeds = Shape(3, 7, activation="tanh"), [1, 2]
    rows = replace(rows_for(seeds, 90, 3, torch.float32), counts=[40, 60])
    for batch in (None, 16):
        recipe = Recipe(learning_rate=0.01, steps=20, batch=batch)
        both, alone = started(shape, seeds, torch.float32), started(shape, [1], torch.float32)
        train(both, rows, wavy, recipe, batch_generators(seeds))
        train(alone, Rows(rows.x[:1, :40], rows.y[:1, :40]), wavy, recipe, batch_generators([1]))
        assert torch.equal(both.flat[0], alone.flat[0])


def test_the_same_call_gives_the_same_numbers_and_the_next_one_new_batches() -> None:
    shape, dtype = Shape(3, 5), torch.float32
    rows, recipe = rows_for([1, 2], 40, 3, dtype), Recipe(learning_rate=0.01, epochs=2, batch=8)
    sources = batch_generators([1, 2])
    nets = [started(shape, [1, 2], dtype) for _ in range(3)]
    train(nets[0], rows, mse, recipe, sources)
    train(nets[1], rows, mse, recipe, sources)
    train(nets[2], rows, mse, recipe, batch_generators([1, 2]))
    assert torch.equal(nets[0].flat, nets[2].flat)
    assert not torch.equal(nets[0].flat, nets[1].flat)


# Ends -----------------------------------------------------------------------------------------


def scripted(losses: list[list[float]]) -> Any:
    """A loss that takes prescribed values, with a gradient of one for every output bias."""

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        script = torch.tensor(losses, dtype=outputs.dtype)[info.state["member"], info.step]
        moving = outputs[:, 0, 0]
        return script + moving - moving.detach()

    return loss


def follow(losses: list[list[float]], **settings: Any) -> tuple[Tensor, Outcome]:
    """Output biases at the end, if each update adds -1 to a bias that starts at 0."""
    members = len(losses)
    net = StackedMLP(Shape(1, 1), members, torch.float64)
    rows = Rows(net.flat.new_zeros(members, 4, 1), net.flat.new_zeros(members, 4))
    recipe = Recipe(
        **{"learning_rate": 1.0, "optimiser": "sgd", "steps": len(losses[0])} | settings
    )
    state = {"member": torch.arange(members)}
    outcome = train(
        net, rows, scripted(losses), recipe, batch_generators(range(members)), state=state
    )
    return -net.state()["out.bias"][:, 0], outcome


def test_early_stopping_restores_the_best_weights_and_stops_at_the_right_step() -> None:
    rows = [
        [5, 4, 3, 4, 3, 4, 1, 1, 1, 1],  # best at step 2, then three checks without better
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],  # never stops: the last loss is the best
        [1, 2, 9, 8, 9, 9, 7, 8, 8, 8],  # what came before step 2 does not count
    ]
    biases, outcome = follow([[float(v) for v in row] for row in rows], stop_from=2, patience=3)
    assert biases.tolist() == [2, 9, 6]
    assert outcome.steps == [5, 10, 9]
    assert outcome.loss.tolist() == [3, 0, 7]
    assert outcome.diverged == [-1, -1, -1]


def test_checks_may_be_some_steps_apart() -> None:
    biases, outcome = follow(
        [[5.0, 0, 4, 0, 6, 0, 7, 0, 1], [1.0] * 9], stop_from=0, patience=2, check_every=2
    )
    assert biases.tolist() == [2, 0]
    assert outcome.steps == [6, 4]


def test_without_reaching_the_first_check_the_last_weights_stay() -> None:
    biases, outcome = follow([[1.0, 2.0, 3.0], [1.0, 0.0, 2.0]], stop_from=3)
    assert biases.tolist() == [3, 3]
    assert outcome.loss.tolist() == [3, 2]


def test_the_watched_loss_includes_penalties_but_not_weight_decay() -> None:
    net = started(Shape(2, 3), [1, 2], torch.float64)
    weight = net.state()["hidden0.weight"].flatten(1)
    expected = 0.5 * weight.abs().sum(dim=1) + 0.25 * weight.square().sum(dim=1)
    rows = rows_for([1, 2], 10, 2, torch.float64)
    plain = mse(net(rows.x), rows.y, torch.ones_like(rows.y), _info()).detach()
    recipe = Recipe(learning_rate=0.1, steps=1, l1=0.5, l2=0.25, weight_decay=1.0)
    outcome = train(net, rows, mse, recipe, batch_generators([1, 2]))
    torch.testing.assert_close(outcome.loss, plain + expected)


def test_a_validation_set_decides_when_given() -> None:
    """Validation targets that the start fits best: the first weights must come back."""
    net = started(Shape(2, 8, activation="tanh"), [1, 2], torch.float64)
    start = net.flat.clone()
    rows = rows_for([1, 2], 40, 2, torch.float64)
    held = Rows(rows.x[:, :33], net.predict(rows.x[:, :33])[..., 0])
    recipe = Recipe(learning_rate=0.01, steps=50, stop_from=0, patience=4, check_every=3)
    outcome = train(net, rows, mse, recipe, batch_generators([1, 2]), validation=held)
    assert torch.equal(net.flat, start)
    assert outcome.steps == [12, 12]
    assert outcome.loss.tolist() == [0, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_member_is_frozen_with_the_weights_before_the_bad_step(bad: float) -> None:
    biases, outcome = follow([[3.0, 2, 1, 0], [3.0, 2, bad, 0], [3.0, 2, 1, bad]])
    assert biases.tolist() == [4, 2, 3]
    assert outcome.diverged == [-1, 2, 3]
    assert outcome.steps == [4, 2, 3]
    assert outcome.reasons == ["", "loss not finite", "loss not finite"]


def test_a_lone_member_that_diverges_is_recorded() -> None:
    biases, outcome = follow([[1.0, math.nan, 1.0]])
    assert biases.tolist() == [1]
    assert outcome.diverged == [1]


def test_a_bad_gradient_freezes_though_the_loss_is_finite() -> None:
    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        moving = (outputs - outputs.detach())[:, 0, 0]
        # The root has no gradient at 0, which member 1 reaches at step 2.
        reached = torch.full_like(moving, float(info.step != 2))
        return (moving + torch.maximum(reached, info.state["offset"])).square().sqrt()

    outcome, biases = _two(loss, torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    assert outcome.reasons == ["", "gradient not finite"]
    assert outcome.diverged == [-1, 2]
    assert biases == [-4, -2]


def test_an_update_too_large_freezes_though_the_gradient_is_finite() -> None:
    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        slope = info.state["offset"] if info.step == 2 else torch.ones_like(info.rows)
        return slope * (outputs - outputs.detach())[:, 0, 0]

    outcome, biases = _two(loss, torch.tensor([1.0, 1e20]), torch.tensor([1.0, 1e20]))
    assert outcome.reasons == ["", "update not finite"]
    assert outcome.diverged == [-1, 2]
    assert biases[0] == -4
    assert math.isfinite(biases[1])


def _two(loss: Any, offset: Tensor, rate: Tensor) -> tuple[Outcome, list[float]]:
    net = StackedMLP(Shape(1, 1), 2)
    rows = Rows(torch.zeros(2, 4, 1), torch.zeros(2, 4))
    recipe = Recipe(learning_rate=rate, optimiser="sgd", steps=4)
    sources = batch_generators([1, 2])
    outcome = train(net, rows, loss, recipe, sources, state={"offset": offset})
    return outcome, net.state()["out.bias"].flatten().tolist()


def test_members_make_their_own_number_of_steps() -> None:
    biases, outcome = follow([[1.0] * 9] * 4, steps=[9, 0, 3, 1])
    assert biases.tolist() == [9, 0, 3, 1] == outcome.steps
    assert outcome.loss.isnan().tolist() == [False, True, False, False]


def test_epochs_are_as_long_as_a_members_rows_ask_for() -> None:
    net = started(Shape(2, 3), [1, 2], torch.float32)
    rows = replace(rows_for([1, 2], 50, 2, torch.float32), counts=[50, 21])
    recipe = Recipe(learning_rate=0.01, epochs=3, batch=10)
    assert train(net, rows, mse, recipe, batch_generators([1, 2])).steps == [15, 9]


def test_decay_may_count_epochs() -> None:
    """Five steps an epoch, halved each epoch: 5 (1 + 1/2 + 1/4)."""
    net = StackedMLP(Shape(1, 1), 2, torch.float64)
    rows = Rows(net.flat.new_zeros(2, 50, 1), net.flat.new_zeros(2, 50))
    recipe = Recipe(
        learning_rate=1.0, optimiser="sgd", epochs=3, batch=10, decay=0.5, decay_unit="epoch"
    )
    state = {"member": torch.arange(2)}
    flat_loss = scripted([[1.0] * 15] * 2)
    train(net, rows, flat_loss, recipe, batch_generators([1, 2]), state=state)
    assert net.state()["out.bias"].flatten().tolist() == [-8.75, -8.75]


def test_state_is_kept_from_step_to_step_and_handed_back() -> None:
    """Each member counts the rows it has seen, and keeps its count when it leaves early."""

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        info.state["seen"] = info.state["seen"] + info.rows
        return mse(outputs, y, weights, info)

    net = started(Shape(2, 3), [1, 2, 3], torch.float32)
    rows = rows_for([1, 2, 3], 25, 2, torch.float32)
    recipe = Recipe(learning_rate=0.01, steps=[2, 3, 7], batch=10)
    start = torch.tensor([0.0, 0.0, 100.0])
    outcome = train(net, rows, loss, recipe, batch_generators([1, 2, 3]), state={"seen": start})
    assert outcome.state["seen"].tolist() == [20, 25, 160]
    assert start.tolist() == [0, 0, 100]


def test_uniform_numbers_are_fresh_at_every_step_and_per_row() -> None:
    seen: list[Tensor] = []

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        assert info.uniform is not None
        seen.append(info.uniform.clone())
        return mse(outputs, y, weights, info)

    net, rows = started(Shape(2, 3), [1, 2], torch.float64), rows_for([1, 2], 40, 2, torch.float64)
    recipe = Recipe(learning_rate=0.01, steps=5)
    train(net, rows, loss, recipe, batch_generators([1, 2]), uniforms=2)
    drawn = torch.stack(seen)
    assert drawn.shape == (5, 2, padded(40), 2)
    assert drawn.unique().numel() == drawn.numel()
    assert abs(drawn.mean().item() - 0.5) < 0.05


def test_progress_grows_to_one() -> None:
    calls: list[tuple[float, float]] = []
    net, rows = (
        started(Shape(2, 64), [1, 2], torch.float32),
        rows_for([1, 2], 999, 2, torch.float32),
    )
    recipe = Recipe(learning_rate=0.01, steps=600)
    train(net, rows, mse, recipe, batch_generators([1, 2]), on_progress=lambda *c: calls.append(c))
    shares = [share for share, _ in calls]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert all(0 < share <= 1 and math.isfinite(loss) for share, loss in calls)
    assert len(calls) < 60


# What is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "either steps or epochs"),
        ({"steps": 1, "epochs": 1}, "either steps or epochs"),
        ({"steps": 1, "optimiser": "lbfgs"}, "optimiser"),
        ({"steps": 1, "batching": "bag"}, "batching"),
        ({"steps": 1, "batch": 0}, "batch must be"),
        ({"steps": 1, "patience": 0}, "patience"),
    ],
)
def test_senseless_recipes_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(learning_rate=0.1, **wrong)


def test_what_does_not_fit_the_stack_is_refused() -> None:
    net, rows = started(Shape(2, 3), [1, 2], torch.float32), rows_for([1, 2], 9, 2, torch.float32)
    recipe, sources = Recipe(learning_rate=0.1, steps=1), batch_generators([1, 2])
    with pytest.raises(ValueError, match="1 generators"):
        train(net, rows, mse, recipe, sources[:1])
    with pytest.raises(ValueError, match="3 row sets"):
        train(net, rows_for([1, 2, 3], 9, 2, torch.float32), mse, recipe, sources)
    with pytest.raises(ValueError, match="shape"):
        train(net, rows, mse, replace(recipe, l1=torch.zeros(3)), sources)
    with pytest.raises(ValueError, match="hidden7"):
        train(net, rows, mse, replace(recipe, l1=0.1, penalised=("hidden7",)), sources)
    with pytest.raises(ValueError, match="3 numbers of steps"):
        train(net, rows, mse, replace(recipe, steps=[1, 2, 3]), sources)
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


def test_stacks_of_the_native_engine_are_wider(each_engine: str) -> None:
    native, torch_ = (stack_width(Shape(13, 200), 455, engine) for engine in ("auto", "torch"))
    assert (native > 4 * torch_) == (each_engine == "native")


def test_members_with_long_steps_do_not_wait_for_many_others() -> None:
    wide, narrow = (stack_width(Shape(16, 100), rows) for rows in (455, 10740))
    assert wide > narrow == 2

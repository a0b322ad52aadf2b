"""``per_member``: the members of a stacked ensemble are transformed as if each were alone."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from tests.optim.figures import OPTIMISERS, STEPS, gradients, name_of, start
from tests.optim.running import flat, types

SIZE = 3


def member(i, tree):
    """A tree that differs from member to member, in size and sign too."""
    return st.tree.map(lambda x: np.float32((1 - 1.5 * i) * x), tree)


PARAMS = st.stack([member(i, start(np.float32)) for i in range(SIZE)])
GRADS = st.stack(
    [st.stack([member(i, gradients(t, np.float32)) for i in range(SIZE)]) for t in range(STEPS)]
)


def trained(tx, params=PARAMS, grads=GRADS):
    """Compiled, in a loop."""

    def step(carry, g):
        params, state = carry
        updates, state = tx.update(g, state, params)
        return (optim.apply_updates(params, updates), state), None

    run = lambda params, grads: st.lax.scan(step, (params, tx.init(params)), grads)[0]
    return st.jit(run)(params, grads)


def alone(tx, i):
    """One member, eagerly."""
    params = st.take(PARAMS, i)
    state = tx.init(params)
    for t in range(STEPS):
        updates, state = tx.update(st.take(st.take(GRADS, t), i), state, params)
        params = optim.apply_updates(params, updates)
    return params, state


def assert_members_alone(together, make, atol=5e-6):
    params, state = together
    for i in range(SIZE):
        own, own_state = alone(make(i), i)
        np.testing.assert_allclose(flat(st.take(params, i)), flat(own), rtol=0, atol=atol)
        assert st.tree.structure(own_state) == st.tree.structure(state)
        np.testing.assert_allclose(
            flat(st.take(state, i)), flat(own_state), rtol=1e-4, atol=atol
        ) if st.tree.leaves(state) else None


FIRST = {case[0]: case for case in reversed(OPTIMISERS)}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_every_optimizer(name):
    arguments = FIRST[name][1]
    tx = getattr(optim, name)(**arguments)
    atol = 2e-4 if name in ("radam", "rmsprop") else 5e-6
    assert_members_alone(trained(optim.per_member(tx)), lambda i: tx, atol)


@pytest.mark.parametrize(
    "tx",
    [
        optim.clip_by_global_norm(0.5),
        optim.clip_by_block_rms(0.3),
        optim.adaptive_grad_clip(0.2),
        optim.scale_by_trust_ratio(),
        optim.adafactor(0.1, min_dim_size_to_factor=2),
        optim.apply_if_finite(optim.adam(0.1), 2),
        optim.masked(optim.adam(0.1), lambda p: st.tree.map(lambda x: x.ndim > 1, p)),
        optim.MultiSteps(optim.adam(0.1), 2).gradient_transformation(),
    ],
    ids=["norm", "block", "unit", "trust", "factored", "finite", "masked", "steps"],
)
def test_what_looks_at_more_than_one_element(tx):
    assert_members_alone(trained(optim.per_member(tx)), lambda i: tx)


def test_without_it_the_norm_is_that_of_all_members():
    grads = {"w": snp.array([[3.0], [4.0]])}
    together, apart = optim.clip_by_global_norm(1.0), optim.per_member(optim.clip_by_global_norm(1))
    np.testing.assert_allclose(
        together.update(grads, together.init(grads))[0]["w"], [[0.6], [0.8]], rtol=1e-6
    )
    np.testing.assert_allclose(
        apart.update(grads, apart.init(grads))[0]["w"], [[1], [1]], rtol=1e-6
    )


def test_own_hyperparameters():
    rates, decays = [0.1, 0.02, 0.3], np.array([0.0, 0.1, 0.2], np.float32)
    tx = optim.per_member(optim.adamw, learning_rate=rates, weight_decay=decays, b1=0.8)
    make = optim.inject_hyperparams(optim.adamw, static_args=["b1", "b2", "eps", "eps_root"])
    together = trained(tx)
    assert_members_alone(
        together, lambda i: make(learning_rate=rates[i], weight_decay=decays[i], b1=0.8)
    )
    hyperparams = together[1].hyperparams
    assert sorted(hyperparams) == ["learning_rate", "weight_decay"]
    np.testing.assert_array_equal(hyperparams["learning_rate"], np.float32(rates))


def test_own_hyperparameters_beside_a_schedule_for_all():
    schedule = optim.linear_schedule(0.2, 0.0, 5)
    tx = optim.per_member(optim.sgd, learning_rate=schedule, momentum=snp.array([0.0, 0.5, 0.9]))
    make = optim.inject_hyperparams(optim.sgd, static_args="learning_rate")
    assert_members_alone(
        trained(tx), lambda i: make(schedule, momentum=np.float32([0.0, 0.5, 0.9][i]))
    )


@pytest.mark.parametrize("make", [st.random.PRNGKey, st.random.key])
def test_own_keys(make):
    keys = st.random.split(make(0), SIZE)
    words = st.random.key_data(keys) if make is st.random.key else keys
    tx = optim.per_member(optim.noisy_sgd, learning_rate=0.1, key=keys)
    state = tx.init(PARAMS)
    assert types(state) == types(tx.update(st.take(GRADS, 0), state, PARAMS)[1])
    assert_members_alone(
        trained(tx),
        lambda i: optim.inject_hyperparams(
            optim.noisy_sgd, static_args=["learning_rate", "eta", "gamma"]
        )(0.1, key=words[i]),
    )


def test_hyperparameters_can_be_changed():
    tx = optim.per_member(optim.sgd, learning_rate=[0.1, 0.1, 0.1])
    state = tx.init(PARAMS)
    state.hyperparams["learning_rate"] = snp.array([0.0, 1.0, 2.0])
    updates, _ = tx.update(st.tree.map(snp.ones_like, PARAMS), state)
    np.testing.assert_array_equal(updates["b"][:, 0], [0, -1, -2])


def test_extra_arguments_are_of_each_member():
    def update(updates, state, params=None, *, value, **extra):
        return st.tree.map(lambda g: g * value, updates), state

    tx = optim.per_member(optim.GradientTransformationExtraArgs(lambda params: (), update))
    updates, _ = tx.update({"w": snp.ones((2, 1))}, tx.init({"w": snp.ones((2, 1))}),
                           value=snp.array([2.0, 3.0]))  # fmt: skip
    np.testing.assert_array_equal(updates["w"], [[2], [3]])


def test_stacked_modules():
    def model(key):
        with nn.keys(key):
            return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    keys = st.random.split(st.random.PRNGKey(0), SIZE)
    members = [model(key) for key in keys]
    x = st.random.normal(st.random.PRNGKey(1), (16, 3))
    loss = lambda model: snp.mean((model(x) - x[:, :1]) ** 2)
    make = optim.inject_hyperparams(optim.adamw, static_args=["b1", "b2", "eps", "eps_root",
                                                             "weight_decay"])  # fmt: skip

    def steps(tx, model, gradient):
        state = tx.init(model)
        for _ in range(3):
            updates, state = tx.update(gradient(model), state, model)
            model = optim.apply_updates(model, updates)
        return model

    tx = optim.per_member(optim.adamw, learning_rate=[0.01, 0.1, 0.3])
    together = st.jit(lambda m: steps(tx, m, st.vmap(st.grad(loss))))(st.stack(members))
    for i, rate in enumerate([0.01, 0.1, 0.3]):
        own = steps(make(rate), members[i], st.grad(loss))
        assert type(own) is type(together)
        np.testing.assert_allclose(flat(st.take(together, i)), flat(own), rtol=0, atol=2e-5)


def test_members_can_be_dropped_with_their_state():
    tx = optim.per_member(optim.lamb(0.1))
    _, state = tx.update(st.take(GRADS, 0), tx.init(PARAMS), PARAMS)
    kept = lambda tree: st.stack([st.take(tree, i) for i in (2, 0)])
    whole, _ = tx.update(st.take(GRADS, 1), state, PARAMS)
    part, _ = tx.update(kept(st.take(GRADS, 1)), kept(state), kept(PARAMS))
    np.testing.assert_allclose(flat(part), flat(kept(whole)), rtol=1e-6)


def test_program_of_stacked_adamw_has_only_element_wise_operations():
    tx = optim.per_member(optim.adamw(0.1))
    text = str(st.make_graph(tx.update)(st.take(GRADS, 0), tx.init(PARAMS), PARAMS))
    for word in ("reshape", "concatenate", "transpose", "gather", "scatter", "dot"):
        assert word not in text
    plain = str(st.make_graph(optim.adamw(0.1).update)(
        st.take(GRADS, 0), optim.adamw(0.1).init(PARAMS), PARAMS))  # fmt: skip
    # Only the corrections of means, one number a member, are broadcast.
    assert text.count("broadcast_in_dim") <= plain.count("broadcast_in_dim") + 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: optim.per_member(optim.adam(0.1)).init({"a": snp.ones(3), "b": snp.ones(2)}),
            r"differ in their number of members: 3 in params\['a'\] of shape \(3,\), 2 in par",
        ),
        (
            lambda: optim.per_member(optim.adam(0.1)).init({"a": snp.ones(3), "b": snp.ones(())}),
            r"params\['b'\] is one number; stack the members with stretto\.stack",
        ),
        (
            lambda: optim.per_member(optim.sgd, learning_rate=[0.1, 0.2]).init(PARAMS),
            r"3 in params\['b'\] of shape \(3, 2\), 2 in learning_rate of shape \(2,\)",
        ),
        (
            lambda: optim.per_member(optim.adam(0.1)).update(
                st.take(GRADS, 0), optim.adam(0.1).init(PARAMS), PARAMS
            ),
            r"state\[0\]\.count is one number; stack .* state of the stacked",
        ),
        (lambda: optim.per_member(optim.adam(0.1)).init({}), "parameters with leaves, got none"),
        (
            lambda: optim.per_member(optim.sgd, learning_rate=[0.1, -0.2, 0.1]),
            "learning_rate must be at least 0, got -0.2",
        ),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_transformation():
    with pytest.raises(TypeError, match=r"hyperparameters \(learning_rate\) go with a function"):
        optim.per_member(optim.adam(0.1), learning_rate=[0.1, 0.2])
    with pytest.raises(TypeError, match=r"^per_member: expected a GradientTransformation, got 0"):
        optim.per_member(0.1)
    with pytest.raises(TypeError, match="missing a required argument: 'learning_rate'"):
        optim.per_member(optim.adam).init(PARAMS)


def test_names_of_cases_differ():
    assert len({name_of(case) for case in OPTIMISERS}) == len(OPTIMISERS)

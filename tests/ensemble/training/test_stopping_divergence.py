"""Members that go wrong are named, and stay as they were before; the others go on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.ensemble import Divergence, DivergenceError, DivergenceWarning, Trainer

KEY = st.random.PRNGKey(0)
X = np.ones(4, np.float32)


def affine(params, x):
    return params["a"] * x + params["w"]


def ensemble(**options):
    members = [{"a": np.float32(0), "w": np.float32(i)} for i in range(4)]
    return st.Ensemble(affine, members, **options)


def breaking(member, x, own):
    """A loss whose gradient by w is infinite for the member that has own = 1 once w ≥ 3."""
    w, a = member.params["w"], member.params["a"]
    wrong = snp.logical_and(own == 1, w >= 3)
    return a**2 + snp.where(wrong, snp.inf, 1.0) * w


OWN = {"own": np.array([0, 0, 1, 0], np.float32)}


def fit(reaction, steps=4, **options):
    e = ensemble()
    return e, e.fit(
        breaking, X, optim.scale(0.5), steps=steps, batch_size=1, key=KEY, per_member=OWN,
        on_divergence=reaction, **options,
    )  # fmt: skip


def w_of(e):
    return [float(m.params["w"]) for m in e]


def test_freeze():
    with pytest.warns(
        DivergenceWarning, match=r"member 2 diverged at step 2: the gradient or the "
    ):
        e, fitted = fit("freeze")
    assert fitted.diverged == {2: Divergence(step=2, path="w")}
    # Member 2 rises by halves to 3, and no further.
    assert w_of(e) == [2, 3, 3, 5]
    assert np.isfinite(fitted.history["loss"]).all()


def test_drop():
    with pytest.warns(DivergenceWarning, match="it is dropped"):
        e, fitted = fit("drop")
    assert len(e) == 3 and w_of(e) == [2, 3, 5] and list(fitted.diverged) == [2]
    assert fitted.history["loss"].shape == (1, 4)


def test_raise_is_the_default_and_leaves_the_last_finite_parameters():
    e = ensemble()
    with pytest.raises(DivergenceError, match=r"member 2 .* step 2: .* w is not finite") as caught:
        e.fit(breaking, X, optim.scale(0.5), steps=4, batch_size=1, key=KEY, per_member=OWN)
    assert caught.value.divergences == {2: Divergence(2, "w")}
    assert w_of(e) == [2, 3, 3, 5]
    assert w_of(caught.value.state.ensemble) == [2, 3, 3, 5]


def test_ignore():
    e, fitted = fit("ignore")
    assert fitted.diverged == {} and not np.isfinite(w_of(e)[2])
    assert [w_of(e)[i] for i in (0, 1, 3)] == [2, 3, 5]


@pytest.mark.parametrize(
    ("loss", "path"),
    [
        (lambda m, x: m.params["a"] * 0 + st.lax.stop_gradient(snp.log(m.params["a"] - 1)), "loss"),
        (lambda m, x: snp.sqrt(m.params["a"]), "a"),
        (lambda m, x: m.params["a"] + snp.sqrt(m.params["w"]), "w"),
        (lambda m, x: snp.sqrt(m.params["w"]) + snp.sqrt(m.params["a"]), "a"),
    ],
    ids=["loss", "a", "w", "the first of two"],
)
def test_the_part_is_named(loss, path):
    trainer = Trainer(loss, optim.sgd(0.1), on_divergence="freeze")
    e = ensemble()[[0]]
    state, _ = trainer.step(trainer.start(e, KEY), X)
    assert st.ensemble.divergences(state) == {0: Divergence(0, path)}
    assert w_of(state.ensemble) == [0] and not state.each("active").any()


def test_parameters_that_overflow_count_though_gradients_do_not():
    trainer = Trainer(lambda m, x: m.params["w"] * 1e38, optim.sgd(10.0))
    state, _ = trainer.step(trainer.start(ensemble(), KEY), X)
    assert st.ensemble.divergences(state)[0] == Divergence(0, "w")
    assert w_of(state.ensemble) == [0, 1, 2, 3]


def test_optimizers_that_leave_out_such_steps_are_let_do_so():
    def loss(member, x, own):
        return member.params["w"] * snp.where(own > 0, 1.0, 2.0)

    trainer = Trainer(loss, optim.apply_if_finite(optim.sgd(0.5), 3), per_member=OWN)
    state, _ = trainer.step(trainer.start(ensemble(), KEY), X)
    assert w_of(state.ensemble) == [-1, 0, 1.5, 2]


def test_shared_parts_are_kept_from_a_member_that_went_wrong():
    def loss(member, x, own):
        w, a = member.params["w"], member.params["a"]
        return a + w + snp.sqrt(snp.where(own == 1, w - 2, 1.0))  # infinite slope for member 2

    e = ensemble(shared="a")
    with pytest.warns(DivergenceWarning, match="member 2 diverged at step 0"):
        fitted = e.fit(
            loss, X, optim.sgd(0.5), steps=6, batch_size=1, key=KEY, per_member=OWN,
            evaluate_every=2, on_divergence="freeze",
        )  # fmt: skip
    assert [p.group.places for p in fitted.state.packs] == [(0, 1, 3)]
    assert w_of(e) == [-3, -2, 2, 0]
    assert float(e[0].params["a"]) == -3


def test_a_shared_part_that_goes_wrong_alone_stops_all():
    e = ensemble(shared="a")
    trainer = Trainer(lambda m, x: m.params["w"] + snp.sqrt(m.params["a"]), optim.sgd(0.5))
    state, _ = trainer.step(trainer.start(e, KEY), X)
    assert st.ensemble.divergences(state) == {i: Divergence(0, "a") for i in range(4)}
    assert w_of(state.ensemble) == [0, 1, 2, 3]


def test_members_are_named_by_their_place_in_the_ensemble():
    small = {"a": np.float32(0), "w": np.float32(0)}
    large = {**small, "b": np.float32(0)}
    e = st.Ensemble(affine, [small, large, small, large])
    trainer = Trainer(
        lambda m, x, own: m.params["w"] * own + m.params["a"],
        optim.sgd(0.1),
        per_member={"own": np.array([1, 1, np.nan, 1], np.float32)},
    )
    state, _ = trainer.step(trainer.start(e, KEY), X)
    assert st.ensemble.divergences(state) == {2: Divergence(0, "w")}


@pytest.mark.parametrize("reaction", ["raise", "freeze", "ignore"])
def test_while_debugging_the_operation_and_the_member_are_named(reaction):
    def model(p, x):
        return snp.sqrt(p["w"]) * x

    ensemble = st.Ensemble(model, [{"w": 4.0}, {"w": -1.0}, {"w": 1.0}])
    data = snp.ones((4, 1)), snp.ones((4, 1))
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    with st.config(debug_nans=True), pytest.raises(st.errors.NonFiniteError) as raised:
        ensemble.fit(loss, data, st.optim.sgd(0.01), epochs=1, on_divergence=reaction)
    fault = raised.value.fault
    assert (fault.operation, fault.position.code.co_name) == ("sqrt", "model")
    assert "fit: at step 0, of member 1" in str(raised.value)


def test_while_debugging_a_sound_training_ends_as_usual():
    data = snp.ones((4, 1)), snp.zeros((4, 1))
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    ends = []
    for debugged in (False, True):
        ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 1.0}, {"w": 2.0}])
        with st.config(debug_nans=debugged, debug_infs=debugged):
            ensemble.fit(loss, data, st.optim.adam(0.1), steps=3, key=st.random.PRNGKey(0))
        ends.append(ensemble(1.0))
    assert (ends[0] == ends[1]).all()

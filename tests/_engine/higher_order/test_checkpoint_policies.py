"""Policies of checkpoints: what each lets be kept, what it is asked, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.checkpoint import Checkpoint

P = st.checkpoint_policies
name = st.checkpoint_name


def f(x, w):
    """Two names; two products, of which the second has the examples as a shared axis."""
    y = name(snp.sin(x), "sine")
    z = name(y @ w, "product")
    return snp.sin(snp.tanh(z)[:, None, :] @ snp.exp(y)[:, :, None])


def kept(policy, fun=f):
    """The shapes that the way there gives beside its output."""
    x, w = snp.full((5, 3), 0.5), snp.full((3, 3), 0.25)
    loss = lambda x, w: snp.sum(st.checkpoint(fun, policy=policy)(x, w))
    program = st.make_graph(st.value_and_grad(loss, (0, 1)))(x, w)
    forward = next(e for e in program.equations if type(e.primitive) is Checkpoint)
    return sorted([v.type.shape for v in forward.outputs[1:]])


def test_what_each_keeps():
    assert kept(P.nothing_saveable) == kept(None) == []
    assert kept(P.dots_saveable) == [(5, 1, 1), (5, 3)]
    assert kept(P.dots_with_no_batch_dims_saveable) == [(5, 3)]
    assert kept(P.save_only_these_names("sine")) == [(5, 3)]
    assert kept(P.save_only_these_names("sine", "product")) == [(5, 3)] * 2
    assert kept(P.save_only_these_names("other")) == []
    assert kept(P.save_only_these_names()) == []
    assert kept(P.save_any_names_but_these("sine")) == [(5, 3)]
    assert kept(P.save_any_names_but_these()) == [(5, 3)] * 2
    both = P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("sine"))
    assert kept(both) == [(5, 1, 1), (5, 3), (5, 3)]
    assert len(kept(P.everything_saveable)) > 4


def test_another_spelling():
    assert P.checkpoint_dots is P.dots_saveable
    assert P.checkpoint_dots_with_no_batch_dims is P.dots_with_no_batch_dims_saveable


def test_except_names():
    # What was given the name is kept, so that under the name needs no computing but a renaming.
    h = lambda x, w: snp.sin(name(x @ w, "product")) ** 2
    all_but = P.save_anything_except_these_names("product")
    assert len(kept(all_but, h)) == len(kept(P.everything_saveable, h))


def test_convolutions_are_products():
    def h(x, k):
        return snp.sin(st.lax.conv(x, k, (1,), "SAME"))

    def outputs(policy):
        x, k = snp.ones((1, 2, 8)), snp.ones((2, 2, 3))
        loss = lambda x: snp.sum(st.checkpoint(h, policy=policy)(x, k))
        program = st.make_graph(st.value_and_grad(loss))(x)
        return len(next(e for e in program.equations if type(e.primitive) is Checkpoint).outputs)

    assert outputs(P.dots_saveable) == 2
    assert outputs(P.dots_with_no_batch_dims_saveable) == 1


def test_what_a_policy_is_asked():
    asked = []

    def policy(primitive, *types):
        asked.append((primitive, types))
        return False

    inner = st.jit(snp.cos)

    def h(x):
        x = inner(x) + snp.arange(3.0)
        x = st.lax.scan(lambda c, _: (snp.sin(c), None), x, None, length=2)[0]
        return st.checkpoint(snp.exp)(x)

    st.grad(lambda x: snp.sum(st.checkpoint(h, policy=policy)(x)))(snp.ones(3))
    assert all(isinstance(p, Primitive) and isinstance(t, ArrayType) for p, ts in asked for t in ts)
    assert all(types for _, types in asked)  # nothing without operands
    names = [p.name for p, _ in asked]
    assert {"cos", "scan", "checkpoint"} <= set(names)
    assert not {"call", "iota", "exp"} & set(names)


def test_a_loop_is_kept_as_a_whole():
    def h(x):
        return st.lax.scan(lambda c, _: (snp.sin(c), None), x, None, length=4)[0]

    loop = lambda primitive, *types: primitive.name == "scan"
    x = snp.full(3, 0.3)
    loss = lambda x: snp.sum(st.checkpoint(h, policy=loop)(x))
    program = st.make_graph(st.value_and_grad(loss))(x)
    forward = next(e for e in program.equations if type(e.primitive) is Checkpoint)
    assert [v.type.shape for v in forward.outputs] == [(3,), (4, 3)]
    np.testing.assert_allclose(st.grad(loss)(x), st.grad(lambda x: snp.sum(h(x)))(x), rtol=1e-6)


def test_programs_show_the_policy():
    policy = P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("a", "b"))
    text = str(st.make_graph(st.checkpoint(snp.sin, policy=policy))(1.0))
    assert "policy=save_from_both_policies(dots_saveable, save_only_these_names('a', 'b'))," in text


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: P.offload_dot_with_no_batch_dims("device", "pinned_host"),
            NotImplementedError,
            "offload_dot_with_no_batch_dims: .* use dots_with_no_batch_dims_saveable to keep them",
        ),
        (
            lambda: P.save_and_offload_only_these_names(
                names_which_can_be_saved=["a"],
                names_which_can_be_offloaded=["b"],
                offload_src="device",
                offload_dst="pinned_host",
            ),
            NotImplementedError,
            "save_and_offload_only_these_names: .* use save_only_these_names to keep them",
        ),
        (
            lambda: P.save_only_these_names(["a", "b"]),
            TypeError,
            "save_only_these_names: names must be strings, each a separate argument; got list",
        ),
        (
            lambda: P.save_any_names_but_these(1),
            TypeError,
            "save_any_names_but_these: names must be",
        ),
        (
            lambda: P.save_from_both_policies(P.dots_saveable, "a"),
            TypeError,
            "save_from_both_policies: policy_2 must be a policy, a function .*; got str",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_policies_tell_what_they_were_made_by_and_of():
    """Files write it."""
    named = P.save_only_these_names("sine", "product")
    assert named.made_by == ("save_only_these_names", ("sine", "product"))
    assert named.__name__ == "save_only_these_names('sine', 'product')"
    both = P.save_from_both_policies(named, P.dots_saveable)
    assert both.made_by == ("save_from_both_policies", (named, P.dots_saveable))

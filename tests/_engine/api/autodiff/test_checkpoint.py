"""``checkpoint`` on functions of trees: arguments of each kind, static ones, refusals."""

from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_trees_keywords_and_integers():
    @st.checkpoint
    def f(params, x, *rest, scale, names=None):
        """What it is for."""
        hidden = snp.tanh(params["w"] @ x) * scale["by"]
        return {"out": hidden * rest[0], "count": rest[1] + 1, "none": names}

    params, x = {"w": snp.eye(2), "unused": snp.ones(3)}, snp.array([0.5, -0.5])
    scale = {"by": 2.0}
    out = f(params, x, 3.0, 4, scale=scale)
    np.testing.assert_allclose(out["out"], 6 * np.tanh([0.5, -0.5]), rtol=1e-6)
    assert int(out["count"]) == 5 and out["none"] is None
    loss = lambda p, x, s: snp.sum(f(p, x, 3.0, 4, scale=s)["out"])
    for g in (st.grad(loss, (0, 2)), st.jit(st.grad(loss, (0, 2)))):
        of_params, of_scale = g(params, x, scale)
        slope = 6 * (1 - np.tanh([0.5, -0.5]) ** 2)
        np.testing.assert_allclose(of_params["w"], np.outer(slope, x), rtol=1e-5)
        np.testing.assert_array_equal(of_params["unused"], 0)
        np.testing.assert_allclose(of_scale["by"], 3 * np.tanh([0.5, -0.5]).sum(), atol=1e-6)
    assert f.__name__ == "f" and f.__doc__ == "What it is for."


def test_booleans_and_masks():
    f = st.checkpoint(lambda x, mask: snp.where(mask, snp.sin(x), 0.0).sum())
    x, mask = snp.ones(3), snp.array([True, False, True])
    np.testing.assert_allclose(st.grad(f)(x, mask), np.cos(1) * np.array([1, 0, 1]), rtol=1e-6)


def test_spellings():

    @partial(st.checkpoint, policy=st.checkpoint_policies.dots_saveable, prevent_cse=False)
    def f(x):
        return snp.sin(x)

    assert "policy=dots_saveable, prevent_cse=False" in str(st.make_graph(f)(1.0))

    assert float(st.checkpoint(partial(lambda a, x: a * x, 3.0))(2.0)) == 6.0

    class Layer:
        weight = 2.0

        @partial(st.checkpoint, static_argnums=0)
        def __call__(self, x):
            return snp.sin(x) * self.weight

    assert float(st.grad(Layer())(0.0)) == 2.0


def test_static_arguments():
    seen = []

    def f(x, mode, power):
        seen.append(mode)
        return snp.sin(x) ** power if mode == "sine" else x**power

    g = st.checkpoint(f, static_argnums=(1, -1))
    slope = 2 * np.sin(0.5) * np.cos(0.5)
    np.testing.assert_allclose(st.grad(g)(0.5, "sine", 2), slope, rtol=1e-6)
    np.testing.assert_allclose(st.grad(g)(0.5, "plain", 2), 1.0)
    assert seen == ["sine", "plain"]
    h = st.checkpoint(lambda flag, x: x if flag else -x, static_argnums=0)
    assert float(h(False, 2.0)) == -2.0


def test_what_is_taken_from_outside_is_differentiated():
    def f(x):
        return st.checkpoint(lambda y: snp.sin(x * y) + snp.sum(noise))(x * 2.0)

    noise = snp.ones(3)
    want = 4 * 0.3 * np.cos(2 * 0.09)
    np.testing.assert_allclose(st.grad(f)(0.3), want, rtol=1e-6)
    np.testing.assert_allclose(st.jit(st.grad(f))(0.3), want, rtol=1e-6)
    np.testing.assert_allclose(st.vmap(st.grad(f))(snp.full(2, 0.3)), [want] * 2, rtol=1e-6)


def test_a_traced_condition_names_the_argument():
    f = st.checkpoint(lambda x, flag: x if flag else -x)
    with pytest.raises(st.errors.TracedValueError, match=r"the argument flag.*static_argnums"):
        f(1.0, True)


def test_a_result_without_arrays():
    assert st.checkpoint(lambda x: None)(1.0) is None
    assert st.checkpoint(lambda: 3.0)() == 3.0


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.checkpoint(3), TypeError, "checkpoint: expected a function, got int"),
        (
            lambda: st.checkpoint(snp.sin, policy="dots"),
            TypeError,
            r"policy must be None or a function policy\(primitive, \*types\).*; got str",
        ),
        (
            lambda: st.checkpoint(snp.sin, policy=_Unhashable()),
            TypeError,
            "checkpoint: policy must be hashable, got _Unhashable",
        ),
        (
            lambda: st.checkpoint(snp.sin, prevent_cse=1),
            TypeError,
            "checkpoint: prevent_cse must be a bool, got int",
        ),
        (
            lambda: st.checkpoint(snp.sin, static_argnums="x"),
            TypeError,
            "checkpoint: static_argnums must be an int or a sequence of ints; got 'x'",
        ),
        (
            lambda: st.checkpoint(lambda x, n: x, static_argnums=2)(1.0, 2),
            ValueError,
            "static_argnums names argument 2, but function takes 2 positional arguments",
        ),
        (
            lambda: st.jit(st.checkpoint(lambda x, n: x, static_argnums=1))(1.0, 2.0),
            ValueError,
            "static argument 1 of function is traced: the argument n; leave it out of",
        ),
        (
            lambda: st.checkpoint(lambda x, mode: x)(1.0, {"a": "text"}),
            TypeError,
            r"checkpoint of function: mode\['a'\] must be an array",
        ),
        (
            lambda: st.checkpoint(lambda x: "text")(1.0),
            TypeError,
            "function: the result must be an array",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


class _Unhashable:
    __hash__ = None

    def __call__(self, primitive, *types):
        return True


def test_static_arguments_by_name():
    def f(x, n=2, *, kind):
        return snp.sin(x) ** n if kind == "power" else x * n

    for given in (
        {"static_argnames": ("n", "kind")},
        {"static_argnums": 1, "static_argnames": ("kind", "n")},
    ):
        g = st.checkpoint(f, **given)
        assert g(3.0, kind="times") == g(3.0, n=2, kind="times") == g(3.0, 2, kind="times") == 6.0
        slope = st.jit(st.grad(lambda x, g=g: g(x, n=3, kind="power")))(1.0)
        np.testing.assert_allclose(slope, 3 * np.sin(1.0) ** 2 * np.cos(1.0), rtol=1e-6)
    with pytest.raises(ValueError, match="checkpoint: static_argnames names 'z', but f takes x, n"):
        st.checkpoint(f, static_argnames="z")


@pytest.mark.parametrize("transform", [lambda f: f, st.jit], ids=["eager", "jitted"])
def test_static_arguments_need_no_hash(transform):
    f = st.checkpoint(lambda powers, x: sum(x**p for p in powers), static_argnums=0)
    value, slope = transform(st.value_and_grad(lambda x: f([2, 3], x)))(2.0)
    assert float(value) == 12 and float(slope) == 16
    named = st.checkpoint(lambda x, table: x * table["a"], static_argnames="table")
    assert transform(st.grad(lambda x: named(x, table={"a": 3.0})))(1.0) == 3.0


def test_each_residual_has_its_type_and_origin(capsys):
    def f(x, p, n):
        y = snp.sin(x)
        return snp.sum(y * p["w"]) * n

    st.debug.print_saved_residuals(f, snp.ones(3), {"w": snp.ones(3)}, 2)
    lines = capsys.readouterr().out.splitlines()
    kinds = sorted(line.split(" at ")[0] for line in lines)
    assert "float32[3] computed by cos" in kinds and "float32[3] computed by sin" in kinds
    assert "float32[3] the argument p['w']" in lines
    assert all("test_checkpoint.py:" in line for line in lines if " at " in line)


def test_a_checkpoint_keeps_its_arguments(capsys):
    st.debug.print_saved_residuals(st.checkpoint(lambda x: snp.sin(snp.sin(x))), 1.0)
    assert capsys.readouterr().out == "float32[] the argument x\n"

"""Both passes of a function on lists of arrays, as autograd calls them."""

import copy
import pickle

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit.signature import Static
from stretto._engine.core import tree
from stretto.random.streams import next_key
from stretto.torch.exporting import Call, Cotangents, Halves

SEED = snp.zeros(2, "uint32")
X = snp.array([1.0, 2.0])
W = snp.array([3.0, 4.0])


class Scaled:
    """``w * x ** power``, and a count of calls; with noise if it is asked for."""

    name = "scaled"
    names = ("w", "count")

    def __call__(self, arrays, call, args, kwargs):
        out = arrays["w"] * args[0] ** kwargs["power"]
        if call.modes[0]:
            out = out + st.random.normal(next_key(), out.shape)
        return {"out": out}, {"count": arrays["count"] + 1}


def half_of(wanted, noise=False, halves=None):
    leaves, structure = tree.flatten(((X,), {"power": 2}))
    static = tuple([None if x is X else Static(x, "scaled", "power") for x in leaves])
    call = Call("forward", (noise,), structure, static)
    return (halves or Halves(Scaled())).of(call, wanted)


def arrays():
    return [W, snp.array(0), X]


def test_without_gradients_nothing_is_kept():
    result, updates, kept = half_of((False,) * 3).forward(arrays(), SEED)
    assert result["out"].tolist() == [3, 16]
    assert updates["count"] == 1
    assert kept is None


def cotangents(result, *needed, zeros=(None,)):
    return Cotangents(tree.structure(result), zeros, needed)


def test_both_passes():
    half = half_of((True, False, True))
    result, updates, kept = half.forward(arrays(), SEED)
    assert updates["count"] == 1
    assert {0, 2} & {*kept.origins}, "arrays of the call are kept by number"
    pull = kept.pull(dict(enumerate(arrays())))
    both = half.backward(pull, [snp.ones(2)], cotangents(result, True, True))
    assert [g.tolist() for g in both] == [[1, 4], [6, 16]]
    (alone,) = half.backward(pull, [snp.ones(2)], cotangents(result, False, True))
    assert alone.tolist() == [6, 16]
    zero = half.backward(pull, [], cotangents(result, True, False, zeros=(((2,), np.float32),)))
    assert zero[0].tolist() == [0, 0]


def test_the_backward_pass_has_derivatives():
    half = half_of((True, False, True))
    result, _, _ = half.forward(arrays(), SEED)
    reverse = half.reverse(cotangents(result, False, True), (True, False, False, True))
    assert reverse is half.reverse(cotangents(result, False, True), (True, False, False, True))
    values = [*arrays(), snp.ones(2)]
    (slope,), _, kept = reverse.forward(values, SEED)
    assert slope.tolist() == [6, 16]
    pull = kept.pull(dict(enumerate(values)))
    by_w, by_cotangent = reverse.backward(pull, [snp.ones(2)], cotangents([slope], True, True))
    assert by_w.tolist() == [2, 4]  # d(2 w x)/dw
    assert by_cotangent.tolist() == [6, 16]


def test_complex_gradients_are_pytorchs():
    class Product:
        name, names = "product", ("w",)

        def __call__(self, arrays, call, args, kwargs):
            return arrays["w"] * args[0], {}

    leaves, structure = tree.flatten(((X,), {}))
    half = Halves(Product()).of(
        Call("forward", (), structure, (None,) * len(leaves)), (True, False)
    )
    values = [snp.array([1 + 2j]), snp.array([3 + 4j])]
    out, _, kept = half.forward(values, SEED)
    pull = kept.pull(dict(enumerate(values)))
    (slope,) = half.backward(pull, [snp.array([1j])], cotangents(out, True))
    assert slope.tolist() == [(3 - 4j) * 1j]


def test_whether_random_numbers_are_drawn():
    assert half_of((True, False, True), noise=True).draws(arrays(), SEED)
    assert not half_of((True, False, True)).draws(arrays(), SEED)
    half = half_of((False,) * 3, noise=True)
    first, second = (half.forward(arrays(), snp.array([0, k], "uint32"))[0]["out"] for k in (0, 1))
    assert first.tolist() != second.tolist()


def test_equal_calls_have_one_half_and_copies_share_them():
    halves = Halves(Scaled())
    one = half_of((True, False, True), halves=halves)
    assert half_of((True, False, True), halves=halves) is one
    assert half_of((True, False, False), halves=halves) is not one
    assert copy.deepcopy(halves) is halves
    assert pickle.loads(pickle.dumps(halves)).source.name == "scaled"

"""Rules applied leaf by leaf: dtypes, errors, corrections, counts."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto.optim import base

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("update", "moment", "common"),
    [
        (np.float32, np.float32, np.float32),
        (np.float32, BF16, np.float32),
        (BF16, np.float32, np.float32),
        (BF16, BF16, BF16),
        (np.float16, np.float16, np.float16),
        (np.float16, BF16, np.float32),
        (np.complex64, np.float32, np.complex64),
    ],
)
def test_moments_keep_their_dtype_and_updates_have_the_common_one(update, moment, common):
    seen = []

    def rule(g, m):
        seen.extend([g.dtype, m.dtype])
        return g + m, m + base.squared(g)

    g, m = snp.ones(2, update), snp.ones(2, moment)
    new, after = base.leafwise("who", rule, g, {"m": m})
    assert new.dtype == common and after.dtype == moment
    assert min(d.itemsize for d in seen) >= 4


def test_none_is_a_place_without_a_leaf():
    tx = optim.adam(0.1)
    params = {"a": None, "b": snp.ones(1)}
    updates, _ = tx.update(params, tx.init(params), params)
    assert updates["a"] is None
    assert optim.apply_updates(params, updates)["a"] is None


def test_errors_name_who_and_where():
    def apply(updates, moment, params=None):
        return base.leafwise("who", lambda g, *_: (g, g), updates, {"m": moment}, params)

    one = snp.ones(2)
    with pytest.raises(
        ValueError, match=r"who: updates and state\.m differ .* part at updates\['b"
    ):
        apply({"a": one, "b": [one]}, {"a": one, "b": (one,)})
    with pytest.raises(
        ValueError, match=r"who: updates\['a'\] has shape \(2,\), but params\['a'\]"
    ):
        apply({"a": one}, {"a": one}, {"a": snp.ones((3, 2))})
    with pytest.raises(
        TypeError, match=r"who: updates must be floating, but updates\['a'\] is int"
    ):
        apply({"a": snp.array([1])}, {"a": snp.array([1])})
    with pytest.raises(TypeError, match=r"updates\['a'\] is int; keep such leaves out of"):
        apply({"a": 1}, {"a": 1.0})
    with pytest.raises(TypeError, match=r"updates\['a'\] is float0, the gradient of an integer;"):
        apply({"a": st.grad(lambda n: 1.0 * n, allow_int=True)(1)}, {"a": 1.0})
    with pytest.raises(
        TypeError, match=r"who: updates\['a'\] must be an array or a number; got builtins"
    ):
        apply({"a": "x"}, {"a": snp.ones(())})


def test_python_numbers_are_leaves_too():
    tx = optim.sgd(0.5)
    updates, _ = tx.update({"a": 1.0}, tx.init({"a": 1.0}))
    assert float(updates["a"]) == -0.5
    assert float(optim.apply_updates({"a": 1.0}, updates)["a"]) == 0.5


def test_unbias_is_exact_to_rounding():
    for decay in (0.5, 0.9, 0.999, 0.9999999):
        for count in (1, 2, 7, 1000, 10**6):
            exact = -1 / np.expm1(count * np.log(np.float64(decay)))
            for f in (base.unbias, st.jit(base.unbias, static_argnums=0)):
                np.testing.assert_allclose(f(decay, snp.array(count)), exact, rtol=1e-6)
    assert float(base.unbias(0.0, snp.array(1))) == 1


def test_safe_increment_stops_at_the_largest():
    assert int(optim.safe_increment(snp.array(2**31 - 1))) == 2**31 - 1
    assert optim.safe_increment(snp.array(3, snp.uint8)).dtype == np.uint8
    assert float(optim.safe_increment(snp.array(1.5))) == 2.5
    largest = np.finfo(np.float32).max
    assert float(optim.safe_increment(snp.array(largest))) == largest


def test_a_count_at_its_end_still_updates():
    tx = optim.adam(0.1)
    state = tx.init(snp.ones(1))
    last = state[0]._replace(count=snp.array(2**31 - 1, snp.int32))
    updates, after = tx.update(snp.ones(1), (last, state[1]))
    assert np.isfinite(np.asarray(updates)).all() and int(after[0].count) == 2**31 - 1


def test_bounds_of_numbers():
    base.check("who", least=0, below=1, x=0.5, y=np.float32(0.5), z=snp.array(7.0))
    base.check("who", least=0, schedules=True, optional=True, s=len, n=None)
    with pytest.raises(TypeError, match="who: n must be a number or an array, got None"):
        base.check("who", n=None)
    with pytest.raises(TypeError, match="who: s must be a number or an array, got <built-in"):
        base.check("who", optional=True, n=None, s=len)
    with pytest.raises(TypeError, match="who: n must be a number, an array or a schedule"):
        base.check("who", schedules=True, n=None)
    with pytest.raises(ValueError, match=r"who: x must be at least 0 and below 1, got 1\.0"):
        base.check("who", least=0, below=1, x=1.0)
    with pytest.raises(ValueError, match=r"who: x must be above 0, got nan"):
        base.check("who", above=0, x=float("nan"))
    with pytest.raises(TypeError, match=r"who: x must be a number or an array, got True"):
        base.check("who", x=True)


def test_dtypes_of_moments():
    base.check_dtype("who", a=None, b="float16", c=snp.bfloat16, d=float, e=np.dtype("f8"))
    for dtype in (int, "float99", bool, "complex64"):
        with pytest.raises(TypeError, match="who: a must be a floating dtype, got "):
            base.check_dtype("who", a=dtype)

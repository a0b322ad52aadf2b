"""Runs of a transformation on the gradients of ``figures``: eager, and compiled in a scan."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from tests.optim.figures import STEPS, TRANSFORMATIONS, gradients, numbers, start


def flat(tree):
    leaves = [np.asarray(x, np.float64).ravel() for x in st.tree.leaves(tree)]
    return np.concatenate([np.zeros(0), *leaves])


def types(tree):
    """The type of each leaf: shape, dtype, and whether it is weak."""
    return [snp.asarray(x).type for x in st.tree.leaves(tree)]


def run(tx, dtype=np.float32, steps=STEPS):
    """The parameters after some updates, one operation after the other, and the state."""
    params = st.tree.map(snp.asarray, start(dtype))
    state = tx.init(params)
    for t in range(steps):
        updates, state = tx.update(gradients(t, dtype), state, params)
        params = st.optim.apply_updates(params, updates)
    return params, state


def run_scan(tx, dtype=np.float32, steps=STEPS, compiled=True):
    """The same, compiled as one loop, whose state must keep its structure and types."""
    grads = st.stack([gradients(t, dtype) for t in range(steps)])
    params = st.tree.map(snp.asarray, start(dtype))

    def step(carry, g):
        params, state = carry
        updates, state = tx.update(g, state, params)
        return (st.optim.apply_updates(params, updates), state), None

    def whole(params, grads):
        return st.lax.scan(step, (params, tx.init(params)), grads)[0]

    return (st.jit(whole) if compiled else whole)(params, grads)


def assert_stable(tx, dtype=np.float32):
    """A state has the same structure and types before and after an update."""
    params = st.tree.map(snp.asarray, start(dtype))
    before = tx.init(params)
    _, after = tx.update(gradients(0, dtype), before, params)
    assert st.tree.structure(before) == st.tree.structure(after)
    assert types(before) == types(after)
    assert not any(t.weak_type for t in types(before))


def assert_figures(name, tx, atol=5e-6):
    """The run is that of optax: in double precision, in a compiled loop, and state types stay."""
    expected = numbers(dict(TRANSFORMATIONS)[name])
    with st.enable_x64():
        np.testing.assert_allclose(flat(run(tx, np.float64)[0]), expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(flat(run_scan(tx)[0]), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(flat(run(tx)[0]), expected, rtol=0, atol=atol)
    assert_stable(tx)


def slowly(step, moments=1, dtype=np.float32):
    """The parameters after runs of one element at a time, in NumPy: ``step(t, g, p, *moments)``.

    The moments begin at 0. ``step`` gives the new parameter and the new moments.
    """
    params = [np.array(x) for x in st.tree.leaves(start(dtype))]
    kept = [[np.zeros_like(p) for p in params] for _ in range(moments)]
    for t in range(STEPS):
        for i, g in enumerate(st.tree.leaves(gradients(t, dtype))):
            for at in np.ndindex(g.shape):
                new, *after = step(t, g[at], params[i][at], *[m[i][at] for m in kept])
                params[i][at] = new
                for m, x in zip(kept, after, strict=True):
                    m[i][at] = x
    return np.concatenate([np.asarray(p, np.float64).ravel() for p in params])

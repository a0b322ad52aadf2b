"""Nonlinear least squares by Gauss-Newton, without ever forming a Jacobian.

Each step solves (JᵀJ + λI) d = -Jᵀr by conjugate gradients. ``linearize`` gives v ↦ J v and
``linear_transpose`` of that u ↦ Jᵀ u, so a product with JᵀJ costs one pass forward and one back.
Run it: ``python examples/gauss_newton.py``.
"""

import numpy as np

import stretto as st
import stretto.numpy as snp

tree = st.tree


def dot(x, y):
    """The inner product of two trees."""
    return sum(snp.sum(a * b) for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True))


def conjugate_gradients(matvec, b, steps):
    """An approximate solution of matvec(x) = b for a positive definite matvec, from zero."""

    def step(state, _):
        x, r, p, rr = state
        q = matvec(p)
        alpha = rr / snp.maximum(dot(p, q), 1e-30)
        x = tree.map(lambda x, p: x + alpha * p, x, p)
        r = tree.map(lambda r, q: r - alpha * q, r, q)
        after = dot(r, r)
        p = tree.map(lambda r, p: r + after / snp.maximum(rr, 1e-30) * p, r, p)
        return (x, r, p, after), None

    zero = tree.map(snp.zeros_like, b)
    return st.lax.scan(step, (zero, b, b, dot(b, b)), length=steps)[0][0]


def gauss_newton(residual, params, steps=20, inner=20, damping=1e-3):
    """Parameters that make the sum of squares of ``residual(params)`` small, and its history."""

    def step(params, _):
        r, forward = st.linearize(residual, params)
        backward = st.linear_transpose(forward, params)

        def normal(v):
            (u,) = backward(forward(v))
            return tree.map(lambda u, v: u + damping * v, u, v)

        (slope,) = backward(r)
        d = conjugate_gradients(normal, tree.map(snp.negative, slope), inner)
        return tree.map(snp.add, params, d), snp.sum(r * r)

    return st.jit(lambda p: st.lax.scan(step, p, length=steps))(params)


def curve(params, t):
    """A damped oscillation."""
    return params["size"] * snp.exp(-params["decay"] * t) * snp.sin(params["rate"] * t)


def main():
    """Recover the parameters of a curve from noisy samples of it."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 3, 60)
    truth = {"size": 2.0, "decay": 0.5, "rate": 4.0}
    y = np.asarray(curve(truth, t)) + 0.02 * rng.normal(size=t.shape)
    start = tree.map(snp.float32, {"size": 1.5, "decay": 0.3, "rate": 3.7})
    solution, history = gauss_newton(lambda p: curve(p, t) - y, start)
    for step in (0, 1, 2, 4, 8, 19):
        print(f"step {step:2d}: sum of squares {float(history[step]):.5f}")
    print({name: round(float(value), 3) for name, value in solution.items()}, "wanted", truth)
    return solution, truth, history


if __name__ == "__main__":
    main()

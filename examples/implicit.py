"""Implicit differentiation: choosing a regularizer by the gradient of a validation loss.

The weights of a logistic regression are where the gradient of its loss is zero. ``custom_root``
differentiates that statement, and not the steps of the solver that made it true: by the implicit
function theorem, dw/dλ = -H⁻¹ ∂(∇loss)/∂λ. The solver may be any; here Newton's method, in a loop
that cannot itself be run backwards. Run it: ``python examples/implicit.py``.
"""

import numpy as np

import stretto as st
import stretto.numpy as snp


def conjugate_gradients(matvec, b, tolerance=1e-6):
    """The solution of matvec(x) = b for a positive definite matvec."""

    def unfinished(state):
        _, _, _, rr, count = state
        return (rr > tolerance**2 * snp.dot(b, b)) & (count < 5 * b.size)

    def step(state):
        x, r, p, rr, count = state
        q = matvec(p)
        alpha = rr / snp.dot(p, q)
        r = r - alpha * q
        after = snp.dot(r, r)
        return x + alpha * p, r, r + after / rr * p, after, count + 1

    start = (snp.zeros_like(b), b, b, snp.dot(b, b), 0)
    return st.lax.while_loop(unfinished, step, start)[0]


def solve_symmetric(matvec, b):
    """The same, linear in ``b`` to forward and reverse derivatives alike."""
    return st.lax.custom_linear_solve(matvec, b, conjugate_gradients, symmetric=True)


def newton(f, start, steps=25, tolerance=1e-6):
    """A root of ``f``, whose Jacobian is symmetric and positive definite."""

    def unfinished(state):
        _, fx, count = state
        return (snp.max(snp.abs(fx)) > tolerance) & (count < steps)

    def step(state):
        x, fx, count = state
        x = x - conjugate_gradients(lambda v: st.jvp(f, (x,), (v,))[1], fx)
        return x, f(x), count + 1

    return st.lax.while_loop(unfinished, step, (start, f(start), 0))[0]


def loss(w, x, y):
    """The mean logistic loss for labels -1 and 1."""
    return snp.mean(st.nn.softplus(-y * (x @ w)))


def fit(log_strength, x, y):
    """The weights that minimize the loss with a penalty, differentiable in ``log_strength``."""

    def penalized(w):
        return loss(w, x, y) + 0.5 * snp.exp(log_strength) * snp.dot(w, w)

    return st.lax.custom_root(st.grad(penalized), snp.zeros(x.shape[1]), newton, solve_symmetric)


def data(count, features=20, useful=3, seed=0):
    """Points of which few features matter, with noisy labels."""
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(features) < useful, 2.0, 0.0)
    x = rng.normal(size=(count, features))
    y = np.where(x @ truth + 2 * rng.normal(size=count) > 0, 1.0, -1.0)
    return x.astype(np.float32), y.astype(np.float32)


def main():
    """Follow the gradient of the validation loss with respect to the strength of the penalty."""
    train, valid = data(60, seed=0), data(500, seed=1)
    step = st.jit(st.value_and_grad(lambda s: loss(fit(s, *train), *valid)))
    strength, history = snp.array(-7.0), []
    for i in range(40):
        value, slope = step(strength)
        history.append(float(value))
        if i % 10 == 0:
            print(f"penalty {float(snp.exp(strength)):.4f}: validation loss {history[-1]:.4f}")
        strength = strength - 8.0 * slope
    print(f"penalty {float(snp.exp(strength)):.4f}: validation loss {history[-1]:.4f}")
    return history, float(strength)


if __name__ == "__main__":
    main()

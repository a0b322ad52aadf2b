"""An ODE solver with steps of its own choice, and gradients through it by the adjoint equation.

The solver is a ``while_loop``: how many steps it takes depends on the numbers, so it cannot be run
backwards as it stands. Its derivative is the solution of another ODE, run from the end to the start
with the same solver, in memory that does not grow with the steps. For dy/dt = f(t, y, p) the
adjoint a = dL/dy obeys da/dt = -aᵀ ∂f/∂y, and dL/dp is the integral of aᵀ ∂f/∂p. Sources: Bogacki
and Shampine (1989) for the method, Chen et al. (2018), Neural ordinary differential equations, for
the adjoint. Run it: ``python examples/ode.py``.
"""

import functools

import numpy as np

import stretto as st
import stretto.numpy as snp

tree = st.tree


def add_scaled(y, *terms):
    """``y`` plus each tree of the pairs (scale, tree), scaled."""
    for scale, k in terms:
        y = tree.map(lambda y, k, scale=scale: y + scale * k, y, k)
    return y


def solve(f, y0, t0, t1, tolerance):
    """The solution at ``t1`` of dy/dt = f(t, y) with y(t0) = y0, a tree, and the steps taken.

    Bogacki and Shampine's pair of orders 3 and 2; the difference of both sets the size of a step.
    """
    direction = snp.sign(t1 - t0)

    def error_norm(error, y):
        ratios = tree.map(
            lambda e, y: snp.mean((e / (tolerance * (1 + snp.abs(y)))) ** 2), error, y
        )
        leaves = tree.leaves(ratios)
        return snp.sqrt(sum(leaves) / len(leaves))

    def step(state):
        t, y, k1, size, count = state
        h = direction * snp.minimum(size, snp.abs(t1 - t))
        k2 = f(t + h / 2, add_scaled(y, (h / 2, k1)))
        k3 = f(t + 3 * h / 4, add_scaled(y, (3 * h / 4, k2)))
        new = add_scaled(y, (2 * h / 9, k1), (h / 3, k2), (4 * h / 9, k3))
        k4 = f(t + h, new)
        zero = tree.map(snp.zeros_like, y)
        error = add_scaled(zero, (-5 * h / 72, k1), (h / 12, k2), (h / 9, k3), (-h / 8, k4))
        norm = error_norm(error, new)
        good = norm <= 1
        keep = lambda new, old: tree.map(lambda a, b: snp.where(good, a, b), new, old)
        factor = snp.clip(0.9 * snp.maximum(norm, 1e-10) ** (-1 / 3), 0.2, 5.0)
        return snp.where(good, t + h, t), keep(new, y), keep(k4, k1), size * factor, count + 1

    def unfinished(state):
        t, size = state[0], state[3]
        return (direction * (t1 - t) > 0) & (size > 1e-7)

    start = (t0, y0, f(t0, y0), 0.05 * snp.abs(t1 - t0), 0)
    _, y, _, _, count = st.lax.while_loop(unfinished, step, start)
    return y, count


@functools.partial(st.custom_vjp, nondiff_argnums=(0, 5))
def odeint(f, y0, t0, t1, params, tolerance=1e-4):
    """y(t1) for dy/dt = f(t, y, params), y(t0) = y0; differentiable in y0, t0, t1 and params."""
    return solve(lambda t, y: f(t, y, params), y0, t0, t1, tolerance)[0]


def forward(f, y0, t0, t1, params, tolerance):
    """The solution, and what the way back starts from."""
    y1 = odeint(f, y0, t0, t1, params, tolerance)
    return y1, (y1, t0, t1, params)


def backward(f, tolerance, residuals, a1):
    """Solve for y, a and dL/dp together, from t1 back to t0."""
    y1, t0, t1, params = residuals

    def augmented(t, state):
        y, a, _ = state
        dy, pull = st.vjp(lambda y, p: f(t, y, p), y, params)
        da, dp = pull(a)
        return dy, tree.map(snp.negative, da), tree.map(snp.negative, dp)

    zeros = tree.map(snp.zeros_like, params)
    (y0, a0, slope), _ = solve(augmented, (y1, a1, zeros), t1, t0, tolerance)
    inner = lambda a, dy: sum(
        snp.sum(u * v) for u, v in zip(*map(tree.leaves, (a, dy)), strict=True)
    )
    return a0, -inner(a0, f(t0, y0, params)), inner(a1, f(t1, y1, params)), slope


odeint.defvjp(forward, backward)


def pendulum(t, y, params):
    """A pendulum with friction: angle and speed."""
    angle, speed = y
    return snp.stack([speed, -params["gravity"] * snp.sin(angle) - params["friction"] * speed])


def main():
    """Find gravity and friction from where 16 pendulums are after two seconds."""
    rng = np.random.default_rng(0)
    starts = rng.uniform(-1.5, 1.5, (16, 2)).astype(np.float32)
    truth = {"gravity": 9.81, "friction": 0.3}
    run = lambda p: st.vmap(lambda y: odeint(pendulum, y, 0.0, 2.0, p, 1e-4))(starts)
    seen = run(tree.map(snp.float32, truth))

    @st.jit
    def step(p, m):
        value, g = st.value_and_grad(lambda p: snp.mean((run(p) - seen) ** 2))(p)
        m = tree.map(lambda m, g: 0.8 * m + g, m, g)
        return tree.map(lambda p, m: p - 0.2 * m, p, m), m, value

    p = tree.map(snp.float32, {"gravity": 8.5, "friction": 0.6})
    m = tree.map(snp.zeros_like, p)
    for i in range(150):
        p, m, value = step(p, m)
        if i % 50 == 0:
            print(f"step {i}: mean squared error {float(value):.2e}")
    print({name: round(float(x), 3) for name, x in p.items()}, "wanted", truth)
    return p, truth


if __name__ == "__main__":
    main()

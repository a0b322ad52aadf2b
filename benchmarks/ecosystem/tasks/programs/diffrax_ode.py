"""A neural ODE fitted to spirals: diffrax, equinox and optax."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from benchmarks.ecosystem.tasks.data import spirals
from benchmarks.ecosystem.tasks.serving import Steps, serve

EXAMPLES, TIMES, MEMBERS = 32, 20, 4
OPTIMIZER = optax.adabelief(3e-3)


class Field(eqx.Module):
    """Where a point moves, by a small network."""

    network: eqx.nn.MLP

    def __init__(self, key: jax.Array) -> None:
        self.network = eqx.nn.MLP(2, 2, width_size=32, depth=2, activation=jax.nn.softplus, key=key)

    def __call__(self, t: Any, y: Any, args: Any) -> jax.Array:
        return self.network(y)


def path(field: Field, moments: Any, start: Any) -> jax.Array:
    """Where a point is at these moments."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=moments[0],
        t1=moments[-1],
        dt0=moments[1] - moments[0],
        y0=start,
        stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
        saveat=diffrax.SaveAt(ts=moments),
    )
    assert solution.ys is not None
    return solution.ys


def created(key: jax.Array) -> tuple[Field, Any]:
    """A field, and the state of its optimizer."""
    field = Field(key)
    return field, OPTIMIZER.init(eqx.filter(field, eqx.is_inexact_array))


def loss_of(field: Field, moments: Any, points: Any) -> jax.Array:
    """The mean square of what is between points and paths from where they begin."""
    paths = jax.vmap(path, (None, None, 0))(field, moments, points[:, 0])
    return jnp.mean((points - paths) ** 2)


def trained(field: Field, state: Any, moments: Any, points: Any) -> tuple[Field, Any, jax.Array]:
    """The field and its optimizer's state after a step, and the loss before it."""
    loss, grads = eqx.filter_value_and_grad(loss_of)(field, moments, points)
    updates, state = OPTIMIZER.update(grads, state, eqx.filter(field, eqx.is_inexact_array))
    return eqx.apply_updates(field, updates), state, loss


def single(count: int) -> Steps:
    """One field."""
    moments, points = spirals(EXAMPLES, TIMES)
    field, state = created(jax.random.key(0))
    step = eqx.filter_jit(trained)
    for _ in range(count):
        field, state, loss = step(field, state, moments, points)
        yield {"loss": loss}
    return {"path": eqx.filter_jit(path)(field, moments, points[0, 0])}


def ensemble(count: int) -> Steps:
    """Fields that begin differently, and see the same points."""
    moments, points = spirals(EXAMPLES, TIMES)
    fields, state = eqx.filter_vmap(created)(jax.random.split(jax.random.key(0), MEMBERS))
    axis = eqx.if_array(0)
    step = eqx.filter_jit(eqx.filter_vmap(trained, in_axes=(axis, axis, None, None)))
    for _ in range(count):
        fields, state, loss = step(fields, state, moments, points)
        yield {"loss": loss}
    paths = eqx.filter_jit(eqx.filter_vmap(path, in_axes=(axis, None, None)))
    return {"path": paths(fields, moments, points[0, 0])}


if __name__ == "__main__":
    serve(single, ensemble)

"""Arrays to try functions of layers on, and digests that stand for what PyTorch gives for them.

The digests in the tests are from PyTorch 2.13.0 in float64: with ``f`` the function of the same
name in torch.nn.functional, arrays from ``made`` as tensors and their settings,

    out = f(**tensors, **settings); out.backward(cos(arange(out.numel())).reshape(out.shape))
    [tuple(out.shape), digest(out), *[digest(t.grad) for t in tensors.values()]]

and for layers, ``f`` the class in torch.nn made with the same arguments, inputs ``numbers(shape,
0)``, and ``numbers(shape, 1)``, ``numbers(shape, 2)`` ... copied into its parameters in order: the
digests of the result, and of the gradients of inputs and parameters.
"""

from __future__ import annotations

import math

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn


def numbers(shape, j):
    return np.sin(1.3 * np.arange(math.prod(shape)) + j).reshape(shape).astype(np.float32)


def made(arrays):
    """Arrays by name: of a shape, numbers between -1 and 1 (variances between 1 and 3)."""
    out = {}
    for j, (name, given) in enumerate(arrays.items()):
        if isinstance(given, tuple):
            values = numbers(given, j)
            out[name] = values + 2 if name == "running_var" else values
        else:
            out[name] = np.asarray(given)
    return out


def weights(size):
    return np.cos(np.arange(size))


def digest(x):
    """One number that stands for an array."""
    x = np.asarray(x, np.float64).ravel()
    return float(x @ weights(x.size))


def digests(f, arrays, settings, run=lambda f: f):
    """Shape and digest of the result, digests of the gradients of the arrays that are floats."""
    given = made(arrays)
    moving = {n: v for n, v in given.items() if v.dtype == np.float32 and "running" not in n}
    fixed = {n: v for n, v in given.items() if n not in moving}

    def both(moving):
        out, back = st.vjp(lambda m: f(**fixed, **m, **settings), moving)
        (grads,) = back(weights(out.size).reshape(out.shape).astype(np.float32))
        return out, grads

    out, grads = run(both)(moving)
    return [out.shape, digest(out), *[digest(grads[n]) for n in moving]]


def with_numbers(name, args, settings):
    """The layer of this class, with numbers for parameters."""
    layer = getattr(nn, name)(*args, **settings)
    given = {n: numbers(p.shape, j) for j, (n, p) in enumerate(layer.named_parameters(), 1)}
    layer.load_state_dict(given, strict=False)
    return layer


class Flat(nn.Module):
    """A layer with its results, where there are several, one after another in one vector."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *inputs):
        outs = st.tree.leaves(self.layer(*inputs))
        return outs[0] if len(outs) == 1 else snp.concatenate([o.ravel() for o in outs])


def layer_digests(layer, inputs, run=lambda f: f):
    """Digests of the result and its gradients, and the layer as the call leaves it."""
    given = [numbers(x, 0) if isinstance(x, tuple) else np.array(x) for x in inputs]
    params = dict(layer.named_parameters())

    def both(layer, params, moving):
        def f(params, moving):
            made = layer.clone()
            made.load_state_dict(params, strict=False)
            out, after = nn.stateful_call(made, *(moving or given))
            return out, after

        out, back, after = st.vjp(f, params, moving, has_aux=True)
        grads = back(weights(out.size).reshape(out.shape).astype(np.float32))
        return out, grads, after

    moving = given if given[0].dtype == np.float32 else []
    out, (of_params, of_inputs), after = run(both)(layer, params, moving)
    slopes = [digest(g) for g in (*of_inputs, *of_params.values())]
    return [out.shape, digest(out), *slopes], after


def same(got, want):
    """Digests are sums of up to some hundred numbers, each exact to seven digits."""
    assert got[0] == want[0]
    np.testing.assert_allclose(got[1:], want[1:], rtol=1e-4, atol=2e-4)


def names(cases):
    """An id for each case of a table that begins with the function's name."""
    return [f"{case[0]}-{i}" for i, case in enumerate(cases)]

"""Modules for the tests of modules: two layers, and one with tied weights."""

import stretto as st
import stretto.numpy as snp
from stretto import nn


class Affine(nn.Module):
    """A layer with a parameter, an optional one, a buffer, an unsaved buffer, and settings."""

    def __init__(self, n_in=3, n_out=2, bias=True, scale=1.0, *, key=None):
        super().__init__()
        key = st.random.PRNGKey(0) if key is None else key
        self.weight = nn.Parameter(st.random.normal(key, (n_out, n_in)))
        self.bias = nn.Parameter(snp.ones(n_out)) if bias else None
        self.register_buffer("count", snp.zeros((), int))
        self.register_buffer("cache", snp.zeros(2), persistent=False)
        self.scale = scale

    def forward(self, x):
        out = x @ self.weight.T * self.scale
        if self.training:
            self.update_buffer("count", self.count + 1)
        return out if self.bias is None else out + self.bias


class Pair(nn.Module):
    def __init__(self, *, key=None):
        super().__init__()
        one, two = st.random.split(st.random.PRNGKey(1) if key is None else key)
        self.one = Affine(3, 4, key=one)
        self.two = Affine(4, 2, bias=False, key=two)

    def forward(self, x):
        return self.two(snp.tanh(self.one(x)))


class Tied(nn.Module):
    """One module at two places, and one array at two places."""

    def __init__(self):
        super().__init__()
        self.a = Affine(3, 3)
        self.b = self.a
        self.c = Affine(3, 3)
        self.c.weight = self.a.weight

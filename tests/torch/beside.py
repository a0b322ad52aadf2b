"""Imported modules beside PyTorch's, in float64: eager, compiled, ensembles, slopes, files."""

import contextlib
import io
import os
import tempfile
from typing import Any

import numpy as np

import stretto as st


def check_module(modules, args, others=(), *, rtol=1e-7, atol=1e-9, compiled=True, train=False):
    """Compare each module with what comes in of it, for ``args`` and for those of other calls.

    ``modules`` are of one architecture; their results are tensors, or tuples of them. They run
    eagerly, compiled (if so wanted), and as an ensemble; slopes are those by all parameters and
    all arguments of floats of the sum of squares of results.
    """
    with st.config(enable_x64=True), st.nn.keys(st.random.key(0)):
        modules = [m.double().train(train) for m in modules]
        with contextlib.redirect_stderr(io.StringIO()):
            ensemble = st.Ensemble.from_torch(modules, args, train=train).train(train)
        ours = [ensemble[k] for k in range(len(modules))]
        calls = [args, *others]
        for m, own in zip(modules, ours, strict=True):
            for call in calls:
                _check_call(m, own, call, rtol, atol, compiled)
        if compiled:
            several = st.jit(ensemble)
            for call in calls:
                out = _flat(several(*[x.numpy() for x in call]))
                for k, m in enumerate(modules):
                    _compare([x[k] for x in out], _theirs(m, call), rtol, atol)
        path = os.path.join(tempfile.mkdtemp(), "module.safetensors")
        st.torch.save(path, ours[0])
        again = st.torch.load(path).train(train)
        x = [x.numpy() for x in args]
        _compare(_flat(again(*x)), _theirs(modules[0], args), rtol, atol)


def _flat(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _theirs(module, call):
    return [x.detach().numpy() for x in _flat(module(*[x.clone() for x in call]))]


def _compare(ours, theirs, rtol, atol):
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(np.asarray(x), y, rtol=rtol, atol=atol)


def _check_call(module, ours, call, rtol, atol, compiled):
    arrays = [x.numpy() for x in call]
    expected = _theirs(module, call)
    _compare(_flat(ours(*arrays)), expected, rtol, atol)
    moving = [k for k, x in enumerate(call) if x.is_floating_point()]

    def loss(m, some):
        given = list(arrays)
        for k, x in zip(moving, some, strict=True):
            given[k] = x
        return sum((x**2).sum() for x in _flat(m(*given)) if x.dtype.kind == "f")

    given = [x.clone() for x in call]
    leaves = [given[k].requires_grad_() for k in moving]
    module.zero_grad()
    total: Any = sum(x.square().sum() for x in _flat(module(*given)) if x.is_floating_point())
    if isinstance(total, int) or not total.requires_grad:
        return
    total.backward()
    of_arrays = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
    of_weights = {
        name: np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        for name, p in module.named_parameters()
    }
    slope = st.grad(loss, (0, 1))
    for f in [slope, st.jit(slope)] if compiled else [slope]:
        by_weights, by_arrays = f(ours, [arrays[k] for k in moving])
        _compare(by_arrays, of_arrays, rtol, atol)
        for name, _ in ours.named_parameters():
            found = by_weights.state_dict()[name]
            np.testing.assert_allclose(np.asarray(found), of_weights[name], rtol=rtol, atol=atol)
    if compiled:
        _compare(_flat(st.jit(ours)(*arrays)), expected, rtol, atol)

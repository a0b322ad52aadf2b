"""Derivatives in torch.func's form; complex figures from PyTorch 2.13."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import func
from stretto.random import PRNGKey, fold_in, keys, next_key

X = snp.array([1.0, 2.0, 3.0])
Y = snp.array([-1.0, 0.5, 2.0])
Z = snp.array([1 + 2j, 3 - 1j])
JIT = pytest.mark.parametrize("how", [lambda f: f, st.jit], ids=["eager", "jit"])


def close(a, b):
    assert st.tree.structure(a) == st.tree.structure(b)
    for x, y in zip(st.tree.leaves(a), st.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


@JIT
def test_grad(how):
    f = lambda x, y: (x * x * y).sum()
    close(how(func.grad(f))(X, Y), 2 * X * Y)
    close(how(func.grad(f, 1))(X, Y), X * X)
    close(how(func.grad(f, argnums=(1, 0)))(X, Y), (X * X, 2 * X * Y))
    close(how(func.grad(f, argnums=(0,)))(X, Y), (2 * X * Y,))
    close(how(func.grad(f, argnums=-1))(X, Y), X * X)
    close(how(func.grad(lambda x, *, y: f(x, y)))(X, y=Y), 2 * X * Y)
    aux = lambda x: (x.sum(), {"twice": 2 * x})
    close(how(func.grad(aux, has_aux=True))(X), (snp.ones(3), {"twice": 2 * X}))
    close(how(func.grad_and_value(f))(X, Y), (2 * X * Y, f(X, Y)))
    close(
        how(func.grad_and_value(aux, has_aux=True))(X), (snp.ones(3), (X.sum(), {"twice": 2 * X}))
    )
    close(how(func.grad(func.grad(lambda x: x**3)))(2.0), snp.array(12.0))
    close(how(func.vmap(func.grad(f), in_dims=(0, None)))(X, 2.0), 4 * X)


def test_grad_refused():
    with pytest.raises(TypeError, match="must return a real scalar"):
        func.grad(lambda x: x)(X)
    with pytest.raises(TypeError, match="argnums names argument 1, but"):
        func.grad(lambda x: x.sum(), argnums=1)(X)
    with pytest.raises(TypeError, match="must be of a floating dtype"):
        func.grad(lambda x: x.sum())(snp.arange(3))


@JIT
def test_complex_numbers_as_in_torch(how):
    close(how(func.grad(lambda z: (z * z).sum().real))(Z), snp.array([2 - 4j, 6 + 2j]))
    close(how(func.grad(lambda z: (abs(z) ** 2).sum()))(Z), snp.array([2 + 4j, 6 - 2j]))
    pulled = how(lambda z, ct: func.vjp(lambda z: z * z, z)[1](ct))(Z, snp.array([1 + 0j, 1j]))
    close(pulled, (snp.array([2 - 4j, -2 + 6j]),))
    pushed = how(lambda z, dz: func.jvp(lambda z: z * z.conj(), (z,), (dz,)))
    close(pushed(Z, snp.array([1j, 1 + 0j])), (snp.array([5 + 0j, 10]), snp.array([4 + 0j, 6])))
    for jacobian in (func.jacrev, func.jacfwd):
        with pytest.raises(TypeError, match=r"argument 0 is complex.*holomorphic=True"):
            jacobian(lambda z: z * z)(Z)


@JIT
def test_vjp_and_jvp(how):
    f = lambda x, d: {"out": x * d["y"]}

    def pull(x, y, ct):
        out, vjp_fn = func.vjp(f, x, {"y": y})
        return out, vjp_fn({"out": ct})

    close(how(pull)(X, Y, Y), ({"out": X * Y}, (Y * Y, {"y": X * Y})))
    _, vjp_fn, aux = func.vjp(lambda x: (x * x, "aux"), X, has_aux=True)
    assert aux == "aux"
    close(vjp_fn(Y), (2 * X * Y,))
    pushed = how(lambda x, y: func.jvp(lambda a, b: a * b, (x, y), (y, x)))(X, Y)
    close(pushed, (X * Y, Y * Y + X * X))
    close(
        func.jvp(lambda x: (x * x, x), (X,), (Y,), has_aux=True, strict=True), (X * X, 2 * X * Y, X)
    )
    _, f_jvp = func.linearize(lambda a, b: a * b, X, Y)
    close(f_jvp(X, Y), X * Y + X * Y)


def test_jvp_strict():
    close(func.jvp(lambda x: snp.ones(2), (X,), (X,)), (snp.ones(2), snp.zeros(2)))
    with pytest.raises(
        ValueError, match="strict=True, and an output of f does not depend on the p"
    ):

        def f(x):
            return x, snp.ones(2)

        func.jvp(f, (X,), (X,), strict=True)


@JIT
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 7])
def test_jacrev(how, chunk_size):
    f = lambda x, y: {"out": snp.sin(x) * y.sum(), "sum": (x * y).sum()}
    jacobian = func.jacrev(f, argnums=(0, 1), chunk_size=chunk_size)
    close(how(jacobian)(X, Y), st.jacfwd(f, argnums=(0, 1))(X, Y))
    with_aux = how(func.jacrev(lambda x: (x * x, x), has_aux=True, chunk_size=chunk_size))(X)
    close(with_aux, (snp.diag(2 * X), X))
    twice = how(func.jacrev(func.jacrev(lambda x: x**3, chunk_size=chunk_size)))(X)
    close(twice, st.jacfwd(st.jacfwd(lambda x: x**3))(X))


@JIT
def test_jacfwd_and_hessian(how):
    f = lambda x, y: (x * x * y).sum()
    close(how(func.jacfwd(lambda x: x * x))(X), snp.diag(2 * X))
    close(how(func.jacfwd(lambda x: (x * x, x), has_aux=True))(X), (snp.diag(2 * X), X))
    close(how(func.hessian(f))(X, Y), snp.diag(2 * Y))
    both = how(func.hessian(f, argnums=(0, 1)))(X, Y)
    close(both, ((snp.diag(2 * Y), snp.diag(2 * X)), (snp.diag(2 * X), snp.zeros((3, 3)))))
    batch = snp.stack([X, Y])
    close(how(func.vmap(func.hessian(lambda x: (x**3).sum())))(batch)[1], snp.diag(6 * Y))


def test_jacfwd_and_random_draws():
    noisy = lambda x: x * st.random.uniform(next_key("Noise"), x.shape)
    with pytest.raises(
        RuntimeError, match=r"Noise draws random numbers, but func.jacfwd does not allow it"
    ):
        func.jacfwd(noisy)(X)
    with keys(PRNGKey(3)):
        jacobian = func.jacfwd(noisy, randomness="same")(X)
    close(jacobian, snp.diag(st.random.uniform(fold_in(PRNGKey(3), 0), (3,))))
    with pytest.raises(ValueError, match="randomness must be 'error' or 'same', got 'different'"):
        func.jacfwd(noisy, randomness="different")


def test_chunk_size_refused():
    for jacobian in (func.jacrev, st.jacfwd, st.jacrev):
        with pytest.raises(ValueError, match="chunk_size must be a positive integer, got 0"):
            jacobian(lambda x: x, chunk_size=0)


def test_names():
    def loss(x):
        return x.sum()

    assert func.grad(loss).__name__ == "grad_loss"
    assert func.jacrev(loss).__name__ == "jacrev_loss"

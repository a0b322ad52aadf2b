"""What a user's script tells a type checker: read by ``test_typing``, and run by it.

``assert_type`` has the expected types; a comment that ignores an error where there is none is an
error itself, so that the lines in ``refused`` are known to be refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, assert_type

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import func, lax, nn, optim, random, special, tree
from stretto.ensemble import Callback, Event, Fitted
from stretto.nn import functional as F
from stretto.scipy import linalg, optimize, signal, sparse, stats
from stretto.typing import Array, ArrayLike, DType, Key, Shape

if TYPE_CHECKING:
    from stretto.ensemble.groups import Member
    from stretto.typing import Compiled, Lowered


class Params(NamedTuple):
    w: Array
    b: Array


@st.jit
def affine(params: Params, x: Array) -> Array:
    return params.w @ x + params.b


@st.jit(static_argnums=1)
def power(x: Array, n: int) -> Array:
    return x**n


def loss(params: Params, x: Array) -> Array:
    return (affine(params, x) ** 2).sum()


class Model:
    @st.jit
    def scaled(self, x: Array, by: float = 2.0) -> Array:
        return by * x

    @functools.partial(st.jit, static_argnames="n")
    def again(self, x: Array, n: int) -> Array:
        return x * n


class Net(nn.Module):
    def __init__(self, width: int = 4, *, key: Key | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(3, width, key=key)
        self.scale = nn.Parameter(snp.ones(width))

    def forward(self, x: Array) -> Array:
        return nn.relu(self.first(x)) * self.scale


def make(key: Key) -> Net:
    return Net(key=key)


def squares(net: Net, x: Array, y: Array) -> Array:
    return ((net(x) - y) ** 2).mean()


@st.custom_jvp
def sine(x: Array) -> Array:
    return x


@sine.defjvp
def sine_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return sine(*primals), tangents[0]


@st.custom_vjp
def halved(x: Array, by: int) -> Array:
    return x / by


@st.config(enable_x64=True)
def wide(x: Array, n: int = 1) -> Array:
    return x * n


def arrays(x: Array, like: ArrayLike) -> None:
    assert_type(x.sum().reshape(1, 1) @ x.reshape(1, -1), Array)
    assert_type(x.mean(axis=(0,), keepdims=True).astype("float32"), Array)
    assert_type(x.at[0].set(1.0).at[...].add(x), Array)
    assert_type(x[1:, None] * x[x > 0].max(), Array)
    assert_type(2 - x, Array)
    assert_type(-abs(x) // 2, Array)
    assert_type(x == like, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type(list(x), list[Array])
    assert_type(x.T.shape, tuple[int, ...])
    assert_type(x.nonzero(), tuple[Array, ...])
    assert_type(x.block_until_ready(), Array)
    assert_type(x.device, st.typing.Device)
    assert_type(float(x.sum()), float)
    assert_type(len(x), int)
    assert_type(np.asarray(x).ndim, int)


def jitted(params: Params, x: Array) -> None:
    assert_type(affine(params, x), Array)
    assert_type(affine(params, x=x), Array)
    assert_type(power(x, 2), Array)
    assert_type(Model().scaled(x), Array)
    assert_type(Model().scaled(x, by=3.0), Array)
    lowered = affine.lower(params, x)
    compiled = lowered.compile()
    if TYPE_CHECKING:
        assert_type(lowered, Lowered[Array])
        assert_type(compiled, Compiled[Array])
    assert_type(compiled(params, x), Array)
    assert_type(affine.trace(params, x).lower().as_text(), str)


def derivatives(params: Params, x: Array) -> None:
    def cubed(x: float) -> float:
        return x**3

    def with_aux(params: Params, x: Array) -> tuple[Array, int]:
        return loss(params, x), 1

    def tree(params: Any, x: Array) -> Array:
        return loss(params, x)

    assert_type(st.grad(loss)(params, x), Params)
    assert_type(st.grad(loss)(params, x=x), Params)
    assert_type(st.value_and_grad(loss)(params, x), tuple[Array, Params])
    assert_type(st.jit(st.value_and_grad(loss))(params, x), tuple[Array, Params])
    assert_type(st.grad(cubed)(2.0), float)
    # mypy does not choose between overloads by an Any, and takes the result for untyped.
    assert_type(st.grad(tree)(params, x).w, Any)  # type: ignore[no-untyped-call]
    assert_type(st.grad(with_aux, has_aux=True)(params, x), tuple[Params, int])
    value, slope = st.jvp(sine, (x,), (x,))
    assert_type(value, Array)
    assert_type(slope, Array)
    value, back = st.vjp(loss, params, x)
    assert_type(value, Array)
    assert_type(back(value), tuple[Any, ...])
    value, forward = st.linearize(sine, x)
    assert_type(forward(x), Array)
    st.jacrev(sine)(x)
    st.hessian(loss)(params, x)


def others(params: Params, x: Array) -> None:
    assert_type(st.vmap(loss, in_axes=(None, 0))(params, x[None]), Array)
    assert_type(st.checkpoint(loss)(params, x), Array)
    assert_type(sine(x), Array)
    assert_type(wide(x, n=2), Array)
    assert_type(st.block_until_ready(params), Params)
    kept: Callable[[Array, int], Array] = wide
    assert_type(kept(x, 2), Array)


def of_numpy(x: Array, like: ArrayLike) -> None:
    assert_type(snp.ones(3), Array)
    assert_type(snp.zeros((2, 3), dtype=snp.float32), Array)
    assert_type(snp.array([[1.0, 2.0], [3.0, 4.0]]), Array)
    assert_type(snp.asarray(np.ones(3)), Array)
    assert_type(snp.arange(0, 10, 2), Array)
    assert_type(snp.linspace(0, 1, 5), Array)
    assert_type(snp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
    assert_type(snp.full_like(x, 2.0), Array)
    assert_type(snp.sin(like) + snp.exp(x) * snp.pi, Array)
    assert_type(snp.maximum(x, 0), Array)
    assert_type(snp.sum(x, axis=(0, 1), keepdims=True), Array)
    assert_type(snp.average(x, weights=x), Array)
    assert_type(snp.average(x, weights=x, returned=True), tuple[Array, Array])
    assert_type(snp.argmax(x, axis=-1), Array)
    assert_type(snp.where(x > 0, x, 0.0), Array)
    assert_type(snp.where(x > 0), tuple[Array, ...])
    assert_type(snp.concatenate([x, x], axis=0), Array)
    assert_type(snp.stack([x, x]), Array)
    assert_type(snp.split(x, 3), list[Array])
    assert_type(snp.meshgrid(x, x), list[Array])
    assert_type(snp.indices((2, 3)), Array)
    assert_type(snp.indices((2, 3), sparse=True), tuple[Array, ...])
    assert_type(snp.unique(x), Array)
    assert_type(snp.unique(x, size=3, fill_value=0), Array)
    assert_type(snp.unique(x, return_index=True, return_counts=True), tuple[Array, ...])
    assert_type(snp.unique(x, return_inverse=True), tuple[Array, ...])
    assert_type(snp.unique(x, return_counts=True), tuple[Array, ...])
    assert_type(snp.atleast_1d(x), Array)
    assert_type(snp.atleast_2d(x, x), list[Array])
    assert_type(snp.atleast_3d(1.0), Array)
    assert_type(snp.polyfit(x, x, 1), Array)
    assert_type(snp.polyfit(x, x, 1, cov=True), tuple[Array, Array])
    assert_type(snp.polyfit(x, x, 1, full=True), tuple[Array, Array, Array, Array, float])
    assert_type(snp.mgrid[0:2, 0:3], Array)
    assert_type(snp.ogrid[0:2, 0:3], list[Array])
    assert_type(snp.finfo(snp.float32).eps, float)
    assert_type(snp.intersect1d(x, x), Array)
    assert_type(snp.intersect1d(x, x, return_indices=True), tuple[Array, Array, Array])
    assert_type(snp.histogram(x, bins=3), tuple[Array, Array])
    assert_type(snp.einsum("ij,jk->ik", x, x), Array)
    assert_type(snp.tensordot(x, x, axes=1), Array)
    assert_type(snp.shape(x), Shape)
    assert_type(x.shape, Shape)
    assert_type(x.dtype, DType)
    assert_type(snp.result_type(x, 1), DType)
    assert_type(snp.allclose(x, x), Array)
    assert_type(snp.fft.rfft(x), Array)
    assert_type(snp.linalg.norm(x), Array)
    assert_type(snp.linalg.solve(x, x), Array)
    q, r = snp.linalg.qr(x)
    assert_type(q @ r, Array)
    assert_type(snp.linalg.qr(x, "complete").Q, Array)
    assert_type(snp.linalg.qr(x, "r"), Array)
    assert_type(snp.linalg.qr(x, mode="raw"), tuple[Array, Array])
    u, s, vh = snp.linalg.svd(x)
    assert_type(u * s @ vh, Array)
    assert_type(snp.linalg.svd(x, full_matrices=False).S, Array)
    assert_type(snp.linalg.svd(x, compute_uv=False), Array)
    assert_type(snp.linalg.eigh(x).eigenvalues, Array)
    assert_type(snp.linalg.slogdet(x).logabsdet, Array)


def of_lax(x: Array) -> None:
    def step(total: Array, y: Array) -> tuple[Array, dict[str, Array]]:
        return total + y, {"total": total}

    assert_type(lax.scan(step, 0.0, x), tuple[Array, dict[str, Array]])
    assert_type(lax.fori_loop(0, 3, lambda i, y: x, 0.0), Array)
    assert_type(lax.while_loop(bool, sine, x), Array)
    assert_type(lax.map(sine, x), Array)
    assert_type(lax.associative_scan(snp.add, x), Array)
    assert_type(lax.stop_gradient({"x": x}), dict[str, Array])
    assert_type(lax.cond(x.sum() > 0, sine, sine, x), Any)
    assert_type(lax.exp(x), Array)
    assert_type(lax.dot_general(x, x, (((1,), (0,)), ((), ()))), Array)
    assert_type(lax.dynamic_slice(x, (0,), (2,)), Array)
    assert_type(lax.top_k(x, 2), tuple[Array, Array])
    assert_type(lax.select(x > 0, x, x), Array)


def of_scipy(x: Array) -> None:
    assert_type(linalg.eigh(x), tuple[Array, Array])
    assert_type(linalg.eigh(x, eigvals_only=True), Array)
    assert_type(linalg.eigh_tridiagonal(x, x), tuple[Array, Array])
    assert_type(linalg.hessenberg(x), Array)
    assert_type(linalg.hessenberg(x, calc_q=True), tuple[Array, Array])
    assert_type(linalg.svd(x), tuple[Array, Array, Array])
    assert_type(linalg.svd(x, compute_uv=False), Array)
    assert_type(linalg.expm_frechet(x, x, compute_expm=False), Array)
    assert_type(linalg.funm(x, snp.sqrt), Array)
    assert_type(linalg.funm(x, snp.sqrt, disp=False), tuple[Array, Array])
    assert_type(stats.norm.logpdf(x, 1.0, scale=2.0), Array)
    assert_type(stats.gaussian_kde(x, "scott").pdf(x), Array)
    assert_type(signal.welch(x, window=("kaiser", 3.0), detrend=False), tuple[Array, Array])
    assert_type(signal.convolve(x, x, precision="highest"), Array)
    assert_type(sparse.linalg.cg(lambda v: v, {"x": x}, M=x)[1], Array)
    assert_type(optimize.minimize(snp.sum, x, method="BFGS").jac, Array)


def of_nn(x: Array, key: Key) -> None:
    net = Net(8, key=key)
    assert_type(net(x), Array)
    assert_type(net.first.weight + net.scale, Array)
    assert_type(net.eval().train().to("bfloat16"), Net)
    assert_type(net.clone(), Net)
    assert_type(net.state_dict(), dict[str, Array])
    assert_type(dict(net.named_parameters()), dict[str, Array])
    assert_type(st.grad(squares)(net, x, x), Net)
    assert_type(st.value_and_grad(squares)(net, x, x), tuple[Array, Net])
    assert_type(nn.stateful_call(net, x), tuple[Any, Net])
    assert_type(nn.Linear(3, 2)(x), Array)
    assert_type(nn.Conv2d(1, 8, 3, padding=1)(x), Array)
    assert_type(nn.Dropout(0.5)(x, key=key), Array)
    assert_type(nn.softmax(x, dim=-1), Array)
    assert_type(F.cross_entropy(x, x), Array)
    assert_type(nn.one_hot(x, 10), Array)
    assert_type(F.adaptive_max_pool2d(x, 1), Array)
    assert_type(F.adaptive_max_pool2d(x, 1, return_indices=True), tuple[Array, Array])
    assert_type(nn.logsumexp(x, 0, keepdim=True), Array)
    assert_type(special.logsumexp(x), Array)
    assert_type(special.logsumexp(x, return_sign=True), tuple[Array, Array])
    assert_type(special.gammaln(x), Array)


def of_optim(params: Params, grads: Params) -> None:
    rate = optim.cosine_decay_schedule(0.1, 100)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate))
    assert_type(optimizer, optim.GradientTransformationExtraArgs)
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    assert_type(optim.apply_updates(params, updates), Params)
    assert_type(optim.incremental_update(params, params, 0.1), Params)
    assert_type(optim.global_norm(grads), Array)
    assert_type(optim.sgd(0.1, momentum=0.9), optim.GradientTransformationExtraArgs)


def of_random(key: Key) -> None:
    assert_type(random.key(0), Key)
    assert_type(random.PRNGKey(0), Key)
    first, second = random.split(key)
    assert_type(first, Key)
    assert_type(second, Key)
    assert_type(random.split(key, 5)[3], Key)
    assert_type([random.normal(k) for k in random.split(key, 3)], list[Array])
    assert_type(random.fold_in(key, 1), Key)
    assert_type(random.normal(key, (2, 3)), Array)
    assert_type(random.uniform(key, minval=-1.0), Array)
    assert_type(random.randint(key, (3,), 0, 10), Array)
    assert_type(random.permutation(key, 10), Array)
    assert_type(random.choice(key, 10, (3,)), Array)
    assert_type(random.categorical(key, snp.zeros(3)), Array)


def of_trees(params: Params, x: Array) -> None:
    assert_type(tree.stack([params, params]), Params)
    assert_type(tree.unstack(params), list[Params])
    assert_type(tree.take(params, 0), Params)
    assert_type(tree.concat([params, params], axis=1), Params)
    assert_type(tree.mean([params, params]), Params)
    assert_type(tree.mean({"w": x}), dict[str, Array])
    assert_type(tree.mean([params, params], stacked=True), list[Params])
    assert_type(tree.weighted_sum([params, params], [0.5, 0.5]), Params)
    assert_type(tree.weighted_sum((p for p in [params]), x), Params)
    assert_type(tree.lerp(params, params, 0.5), Params)
    assert_type(tree.slerp(params, params, x), Params)
    assert_type(tree.axpy(2.0, params, params), Params)
    assert_type(tree.cast(params, "bfloat16"), Params)
    assert_type(tree.dot(params, params), Array)
    assert_type(tree.norm(params), Array)
    assert_type(tree.leaves(params), list[Any])
    assert_type(tree.all(params), bool)
    assert_type(tree.map(snp.ones_like, params), Any)
    leaves, structure = tree.flatten(params)
    assert_type(tree.unflatten(structure, leaves), Any)


def of_func(net: Net, params: Params, x: Array) -> None:
    def with_aux(params: Params, x: Array) -> tuple[Array, int]:
        return loss(params, x), 1

    def cubed(x: float) -> float:
        return x**3

    assert_type(func.grad(loss)(params, x), Params)
    assert_type(func.grad(cubed)(2.0), float)
    assert_type(func.grad(with_aux, has_aux=True)(params, x), tuple[Params, int])
    assert_type(func.grad_and_value(loss)(params, x), tuple[Params, Array])
    assert_type(
        func.grad_and_value(with_aux, has_aux=True)(params, x), tuple[Params, tuple[Array, int]]
    )
    assert_type(func.vmap(loss, in_dims=(None, 0))(params, x), Array)
    value, back = func.vjp(loss, params, x)
    assert_type(value, Array)
    assert_type(back(value), tuple[Any, ...])
    assert_type(func.jvp(sine, (x,), (x,)), tuple[Array, Array])
    assert_type(func.jacrev(sine)(x), Any)
    assert_type(func.hessian(loss)(params, x), Any)
    arrays = net.state_dict()
    assert_type(func.functional_call(net, arrays, (x,)), Array)
    assert_type(
        func.functional_call(net, arrays, x, return_buffers=True), tuple[Array, dict[str, Array]]
    )
    assert_type(func.stack_module_state([net]), tuple[dict[str, Array], dict[str, Array]])


class Note(Callback):
    def on_entry(self, event: Event) -> None:
        assert_type(event.entry["loss"].shape, tuple[Any, ...])
        assert_type(event.step, int)


def ensembles(params: Params, x: Array, y: Array, key: Key) -> None:
    nets = [make(k) for k in random.split(key, 3)]
    ensemble = st.Ensemble(nets, shared="first", chunk_size="auto")
    assert_type(ensemble, st.Ensemble[Net])
    assert_type(ensemble[0], Net)
    assert_type(ensemble[0].scale * 2, Array)
    assert_type([net(x) for net in ensemble], list[Array])
    assert_type(ensemble[1:], st.Ensemble[Net])
    assert_type(ensemble[[0, 2]], st.Ensemble[Net])
    assert_type(ensemble[snp.array([0, 2])], Any)  # of one place, a member
    assert_type(ensemble.groups, list[st.Ensemble[Net]])
    assert_type(ensemble.append(nets[0]).drop(0).train().eval(), st.Ensemble[Net])
    assert_type(ensemble(x, key=key), Array)
    assert_type(ensemble.each(x), Array)
    assert_type(ensemble.vmap(squares, in_axes=(0, None))(x, y), Array)
    assert_type(ensemble.stateful_call(x), tuple[Any, st.Ensemble[Net]])
    assert_type(ensemble.replace(ensemble.state_dict()), st.Ensemble[Net])
    assert_type(st.Ensemble.init(make, key, 3, frozen=["scale"]), st.Ensemble[Net])
    swept = st.ensemble.sweep(
        make, squares, (x, y), st.optim.adam, {"learning_rate": [0.1]}, validation=(x, y), epochs=2
    )
    assert_type(swept.best_ensemble[0], Net)
    assert_type(swept.table(), list[dict[str, Any]])
    regressor = st.ensemble.EnsembleRegressor(3, hidden=(8,)).fit(x, y)
    assert_type(regressor, st.ensemble.EnsembleRegressor)
    assert_type(regressor.predict(x), np.ndarray)
    assert_type(regressor.predict(x, return_std=True), tuple[np.ndarray, np.ndarray])
    assert_type(
        regressor.predict(x, return_interval=0.9), tuple[np.ndarray, np.ndarray, np.ndarray]
    )
    assert_type(st.Ensemble(st.stack(nets)), st.Ensemble[Net])
    assert_type(st.Ensemble.load("ensemble.safetensors", like=ensemble), st.Ensemble[Net])
    fitted = ensemble.fit(squares, (x, y), optim.adam(1e-3), epochs=2)
    assert_type(fitted, Fitted[Net])
    ensemble.fit(
        squares, (x, y), optim.sgd(0.1), steps=1, callbacks=[Note(), lambda event: event.stop()]
    )
    assert_type(fitted.ensemble[0], Net)
    assert_type(fitted.state.best, st.Ensemble[Net])
    assert_type(fitted.history["loss"].shape, tuple[Any, ...])
    mixed = ensemble + st.Ensemble([nn.Linear(3, 2)])
    assert_type(mixed, st.Ensemble[Net | nn.Linear])
    assert_type(mixed(x), Array)
    of_any: st.Ensemble = ensemble
    assert_type(of_any[0], Any)
    assert_type(of_any(x), Any)
    functions = st.Ensemble(affine, [params, params])
    if TYPE_CHECKING:
        assert_type(functions, st.Ensemble[Member])
    assert_type(functions[0].params, Any)
    assert_type(functions(x), Any)
    assert_type(st.ensemble.mean(ensemble(x)), Array)
    assert_type(st.ensemble.accuracy(ensemble(x), y), Array)
    assert_type(st.ensemble.uniform_soup(nets), Net)
    assert_type(st.ensemble.greedy_soup(nets, lambda net: net(x).sum()).params, Net)


def refused(params: Params, x: Array) -> None:
    affine(params, x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    affine(params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    affine(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    power(x, "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Model().scaled(x, 1.0, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.grad(loss)(params, x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.vmap(loss)(params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.checkpoint(loss)(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    wide(x, m=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    halved(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.sum(axes=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.total()  # type: ignore[attr-defined]  # pyright: ignore
    x[0] = 1.0  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    x + "1"  # type: ignore[operator]  # pyright: ignore


def refused_elsewhere(
    net: Net, ensemble: st.Ensemble[Net], params: Params, x: Array, key: Key
) -> None:
    snp.zeros(2, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snp.array(1.0, 2.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snp.concatenate(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snp.sum(x, axes=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    snp.add(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    snp.mean(x, axis="rows")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    snp.linalg.qr(x).U.sum()  # type: ignore[attr-defined]  # pyright: ignore
    snp.linalg.svd(x, compute_uv=False).S.sum()  # type: ignore[attr-defined]  # pyright: ignore
    random.normal((2, 3))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    random.normal(key, 2, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    random.split(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    random.uniform(key, min=0.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    lax.cond(x > 0, sine)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    lax.scan(sine, x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    lax.fori_loop(0, 3, sine, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    nn.Linear(3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    net(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    net.forward(x, True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    nn.Linear(3, 2)("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    F.relu(x, axis=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    optim.adam()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    optim.adam(1e-3, decay=0.1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tree.stack(params, params)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tree.lerp(params, params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    func.functional_call(net)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    func.vmap(loss)(params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    func.grad(loss)(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    st.Ensemble(3)  # type: ignore[call-overload]  # pyright: ignore
    st.Ensemble(affine)  # type: ignore[call-overload]  # pyright: ignore
    st.Ensemble([net], share="first")  # type: ignore[call-overload]  # pyright: ignore
    st.Ensemble.init(make, key)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    st.Ensemble.init(lambda _: params, key, 3)  # type: ignore[type-var]  # pyright: ignore
    ensemble["first"]  # type: ignore[index]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ensemble[0] = net
    ensemble(x).total()  # type: ignore[attr-defined]  # pyright: ignore
    ensemble.fit(squares, (x, x), epochs=2)  # type: ignore[call-arg]  # pyright: ignore
    ensemble.fit(squares, x, optim.sgd(0.1), epoch=2)  # type: ignore[call-arg]  # pyright: ignore

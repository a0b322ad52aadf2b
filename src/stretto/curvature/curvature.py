"""Curvature of a loss over data: the generalised Gauss-Newton matrix, and Fisher information.

All kinds are Σ JᵀSSᵀJ over examples, and differ in the root S of one example, (outputs, rank). So
there is one class, which runs the data in batches, as one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.loops import positive
from stretto.curvature import matrices
from stretto.curvature.batches import dtype_of, need_room
from stretto.curvature.kron import Kron, kron_of
from stretto.curvature.likelihoods import (
    HessianRoot,
    Likelihood,
    LikelihoodLike,
    likelihood_of,
)
from stretto.curvature.parts import Choice, Parts, function_and_params, parts_of
from stretto.nn.module import Module
from stretto.random.keys import as_key

__all__ = ["Curvature", "fisher", "ggn"]

Kind = Literal["ggn", "exact", "monte_carlo", "empirical"]
T = TypeVar("T")
V = TypeVar("V", bound=Any)


@register_dataclass
@dataclass(frozen=True, eq=False)
class Curvature:
    """A symmetric, positive semidefinite matrix over weights, Σ JᵀSSᵀJ over the data.

    It holds the model and the data, and computes what is asked for: ``curvature @ v``, ``dense``,
    ``diagonal``, ``trace``, ``kron`` and ``low_rank``. Sums over the data, never means, and without
    the prior's or the noise's factors. A tree, so it goes through ``jit`` and ``vmap``. Made by
    ``ggn`` and ``fisher``.

    The order of rows is that of ``names``, each weight row by row.

    >>> import stretto as st, stretto.numpy as snp
    >>> model = (lambda w, x: x @ w, snp.zeros((2, 1)))
    >>> curvature = st.curvature.ggn(model, snp.array([[1.0, 2.0]]), "gaussian")
    >>> curvature @ snp.ones(2)
    Array([3., 6.], dtype=float32)
    """

    model: Tree = field(repr=False)
    """The module, or the tree of parameters."""
    x: Tree = field(repr=False)
    """Inputs, (examples, ...)."""
    y: Tree = field(repr=False)
    """Targets, (examples, ...); None where they do not matter."""
    key: Key | None = field(repr=False)
    """The key of drawn targets."""
    function: Callable[..., Any] | None = field(metadata={"static": True})
    """The function of a model that is no module."""
    names: tuple[str, ...] = field(metadata={"static": True})
    """The dotted names of the weights."""
    likelihood: Likelihood = field(metadata={"static": True})
    """What targets are given outputs."""
    kind: Kind = field(metadata={"static": True})
    """Which root: that of the likelihood, or gradients of drawn or of given targets."""
    samples: int = field(metadata={"static": True})
    """How many targets are drawn for each example."""
    batch_size: int | None = field(metadata={"static": True})
    """How many examples are run at a time, at most; None for as many as is sensible."""

    @property
    def parts(self) -> Parts:
        """The model as a function of the weights."""
        model = self.model if self.function is None else (self.function, self.model)
        return parts_of(model, self.names.__contains__, "Curvature")

    @property
    def size(self) -> int:
        """The number of weights, P."""
        return sum(x.size for x in self.parts.chosen.values())

    @property
    def examples(self) -> int:
        """The number of examples."""
        return tree.leaves(self.x)[0].shape[0]

    def __matmul__(self, v: V) -> V:
        """Multiply by a vector: a dictionary of arrays by name, or (P,), or columns (P, k).

        Returns:
            The product, in the same form.

        Raises:
            ValueError: shapes do not fit.
        """
        shapes = {n: x.shape for n, x in self.parts.chosen.items()}
        return matrices.multiply(
            "Curvature", lambda columns: matrices.product(self, columns), shapes, v
        )

    def dense(self) -> Array:
        """Compute the matrix.

        Of a last layer, as the traced program shows it, it is the sum of Λ ⊗ aaᵀ of its inputs a;
        otherwise the Jacobians of all examples are made, a batch at a time.

        Returns:
            (P, P), for P numbers in all weights.

        Raises:
            MemoryError: it, or the Jacobians of one example, would not fit in
                ``config.memory_budget``, or in half of the free memory; said before it is tried.
        """
        size = self.size
        what = f"a matrix of {size:,} × {size:,}"
        need_room("Curvature.dense", size**2, dtype_of(self), what)
        return matrices.dense(self)

    def diagonal(self) -> dict[str, Array]:
        """Compute the diagonal.

        Returns:
            An array of each weight's shape, by name.

        Raises:
            MemoryError: what one example needs would not fit; see ``dense``.
        """
        found = matrices.diagonal(self)
        return {n: found[n] for n in self.names}

    def trace(self) -> Array:
        """Compute the sum of the diagonal.

        Returns:
            One number.
        """
        return sum([x.sum() for x in self.diagonal().values()], start=snp.zeros(()))

    def low_rank(self, rank: int, key: Key, steps: int | None = None) -> tuple[Array, Array]:
        """Compute the largest eigenvalues and their vectors, by Lanczos's method.

        Every step is orthogonalised against all earlier ones, twice, so that no eigenvalue comes
        back as a copy.

        Args:
            rank: how many.
            key: the key of the vector to start from.
            steps: products to take, at least ``rank``; by default 2 ``rank`` + 10, and never more
                than the number of weights, which is exact.

        Returns:
            Eigenvalues (rank,), the largest first, and their vectors as columns, (P, rank).

        Raises:
            ValueError: ``rank`` is not from 1 to the number of weights, or ``steps`` is less.
            MemoryError: the vectors would not fit; see ``dense``.

        Source: Golub and Van Loan, Matrix Computations, 4th edition, section 10.3.
        """
        size = self.size
        rank = positive(rank, "Curvature.low_rank: rank")
        steps = min(size, 2 * rank + 10 if steps is None else steps)
        if rank > size or steps < rank:
            raise ValueError(
                f"Curvature.low_rank: rank must be at most the number of weights, {size}, and "
                f"steps at least rank; got rank={rank}, steps={steps}"
            )
        what = f"{steps} vectors of {size:,}"
        need_room("Curvature.low_rank", steps * size, dtype_of(self), what)
        return matrices.lanczos(self, rank, steps, as_key(key, "Curvature.low_rank"))

    def kron(self) -> Kron:
        """Compute Kronecker factors, B ⊗ A for each weight, from the traced program.

        A weight that enters by products or convolutions, by sums, or by look-ups of rows has
        factors; positions count as examples (KFAC-expand). One that meets other operations, such
        as the scale of a norm, has its exact block, as B, with A = 1.

        Each example takes as many passes back through the model as its root has columns, which are
        run some at a time. A last layer takes none: its B is Σ Λ, which of a likelihood with a name
        is known without a root. Warns where passes take more than 1e14 operations, with the time.

        Returns:
            A ``Kron``, with a block for each weight: a bias has its own.

        Raises:
            NotImplementedError: a weight of more than 4,096 numbers and several axes meets
                something else, by its name, and what it met.
            MemoryError: factors would not fit; see ``dense``.

        Source: Martens and Grosse, Optimizing neural networks with Kronecker-factored approximate
        curvature, 2015 (arXiv:1503.05671); Eschenhagen et al., Kronecker-factored approximate
        curvature for modern neural network architectures, 2023 (arXiv:2311.00636).
        """
        return kron_of(self)


def ggn(
    model: Tree,
    x: Tree,
    likelihood: LikelihoodLike = "categorical",
    *,
    y: Tree = None,
    weights: Choice = "*",
    batch_size: int | None = None,
) -> Curvature:
    """Describe the generalised Gauss-Newton matrix Σ JᵀΛJ of a model's loss over data.

    J is the Jacobian of one example's outputs in the weights, Λ the Hessian of its negative log
    likelihood in the outputs. Nothing is computed yet: ``Curvature`` has what can be asked for.

    Args:
        model: a module in evaluation mode; ``(apply, params)`` with a function
            ``apply(params, x)``; or a member of an ensemble, as in
            ``ensemble.vmap(lambda m: ggn(m, x).kron())()``.
        x: inputs, (examples, ...); a tuple is several arguments of the model. The outputs are
            (examples, ...) too, and no example's depend on another.
        likelihood: ``"categorical"``, ``"bernoulli"``, ``"gaussian"``, ``"heteroscedastic"``, a
            ``Likelihood``, or a function ``nll(f, y)`` of one example; see ``likelihood_of``.
        y: targets, (examples, ...): needed for a function alone, since in the others the Hessian
            does not depend on them.
        weights: patterns of dotted names, ``"last"``, or a function of a name; see ``parts_of``.
        batch_size: how many examples are run at a time, at most; by default what keeps
            intermediate results small.

    Returns:
        The matrix, as a ``Curvature``.

    Raises:
        TypeError: ``model`` or ``likelihood`` is none of these, or a function came without ``y``.
        ValueError: numbers of examples differ, ``weights`` covers nothing, the model is in train
            mode, or a function's Hessian has a negative eigenvalue.

    Source: Schraudolph, Fast curvature matrix-vector products, 2002; sums, not means, as in
    Daxberger et al., Laplace redux, 2021 (arXiv:2106.14806).

    >>> import stretto as st, stretto.numpy as snp
    >>> line = lambda p, x: x @ p["w"]
    >>> x = snp.array([[1.0, 0.0], [1.0, 2.0]])
    >>> st.curvature.ggn((line, {"w": snp.zeros((2, 1))}), x, "gaussian").dense()
    Array([[2., 2.],
           [2., 4.]], dtype=float32)
    """
    whole = likelihood_of(likelihood)
    if isinstance(whole.root, HessianRoot) and y is None:
        raise TypeError(
            f"ggn: the Hessian of the function {whole.name} may depend on the targets; give y="
        )
    keep = y if isinstance(whole.root, HessianRoot) else None
    made = _describe("ggn", model, x, whole, keep, weights, batch_size, "ggn")
    if isinstance(whole.root, HessianRoot):
        _refuse_negative(made)
    return made


def fisher(
    model: Tree,
    x: Tree,
    likelihood: LikelihoodLike = "categorical",
    *,
    kind: Literal["exact", "monte_carlo", "empirical"] = "exact",
    y: Tree = None,
    key: Key | None = None,
    samples: int = 1,
    weights: Choice = "*",
    batch_size: int | None = None,
) -> Curvature:
    """Describe the Fisher information of a model over data, or an estimate of it.

    ``"exact"`` is the expectation of ∇log p ∇log pᵀ over the model's own predictions, which for
    each likelihood that has a name is the generalised Gauss-Newton matrix. ``"monte_carlo"`` is
    its mean over targets drawn from them. ``"empirical"`` has the targets of the data in their
    place: no estimate of the others away from a perfect fit.

    Args:
        model: as in ``ggn``.
        x: inputs, (examples, ...).
        likelihood: as in ``ggn``; a function has the empirical kind alone.
        kind: which.
        y: the targets of ``"empirical"``, (examples, ...).
        key: the key of ``"monte_carlo"``; each example draws by its number, whatever the batches.
        samples: how many targets ``"monte_carlo"`` draws for each example.
        weights: as in ``ggn``.
        batch_size: as in ``ggn``.

    Returns:
        The matrix, as a ``Curvature``.

    Raises:
        TypeError: as ``ggn``; or ``y`` or ``key`` is missing, or given where it has no meaning.
        ValueError: as ``ggn``; or ``kind`` is unknown, or the likelihood cannot be drawn from.

    Source: Kunstner, Balles and Hennig, Limitations of the empirical Fisher approximation, 2019
    (arXiv:1905.12558).

    >>> import stretto as st, stretto.numpy as snp
    >>> line = lambda p, x: x @ p["w"]
    >>> x, y = snp.ones((2, 1)), snp.array([[1.0], [3.0]])
    >>> model = line, {"w": snp.zeros((1, 1))}
    >>> st.curvature.fisher(model, x, "gaussian", kind="empirical", y=y).dense()
    Array([[10.]], dtype=float32)
    """
    whole = likelihood_of(likelihood)
    if kind not in ("exact", "monte_carlo", "empirical"):
        raise ValueError(
            f"fisher: kind must be 'exact', 'monte_carlo' or 'empirical', got {kind!r}"
        )
    if (y is None) == (kind == "empirical"):
        raise TypeError(
            f"fisher: kind={kind!r} "
            + ("needs the targets, y=" if y is None else "takes no targets; leave out y=")
        )
    if (key is None) == (kind == "monte_carlo"):
        raise TypeError(
            f"fisher: kind={kind!r} "
            + ("needs a key to draw targets by, key=" if key is None else "draws nothing: no key=")
        )
    if kind != "empirical" and whole.sample is None:
        raise ValueError(
            f"fisher: kind={kind!r} needs a distribution of targets, and {whole.name} has no "
            f"sample; ggn takes its Hessian, or give a Likelihood with sample="
        )
    key = None if key is None else as_key(key, "fisher")
    count = positive(samples, "fisher: samples")
    return _describe("fisher", model, x, whole, y, weights, batch_size, kind, key, count)


def _describe(
    caller: str,
    model: Tree,
    x: Tree,
    likelihood: Likelihood,
    y: Tree,
    weights: Choice,
    batch_size: int | None,
    kind: Kind,
    key: Key | None = None,
    samples: int = 1,
) -> Curvature:
    """Check what is common to all kinds, and put it together."""
    names = parts_of(model, weights, caller).names
    x, y = tree.map(as_value, x), tree.map(as_value, y)
    sizes = {leaf.shape[:1] for leaf in tree.leaves((x, y))}
    if len(sizes) != 1 or () in sizes or (0,) in sizes:
        shapes = ", ".join(str(leaf.shape) for leaf in tree.leaves((x, y)))
        raise ValueError(
            f"{caller}: x and y must have examples along axis 0, as many, and at least one; got "
            f"shapes {shapes}"
        )
    function = None
    if not isinstance(model, Module):
        function, model = function_and_params(model, caller)
    size = None if batch_size is None else positive(batch_size, f"{caller}: batch_size")
    return Curvature(model, x, y, key, function, names, likelihood, kind, samples, size)


def _refuse_negative(curvature: Curvature) -> None:
    """Raise ``ValueError`` where a Hessian has a negative eigenvalue, if all is known."""
    leaves = tree.leaves(curvature)
    if any(isinstance(x, Tracer) for x in leaves):
        return
    least = float(matrices.least_eigenvalue(curvature))
    if least < 0:
        raise ValueError(
            f"ggn: the Hessian of {curvature.likelihood.name} in the outputs has the eigenvalue "
            f"{least:.3g}, and so no root; give a Likelihood with the root of its Fisher "
            f"information, root(f, y)"
        )

"""Statistics of samples: ranks, modes, standard errors, and densities estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.tree import register_pytree_node_class
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axis, Key, Shape, ShapeLike, Tree
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.exponential import root_of_squares
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto._engine.ops.linalg.triangular import triangular_solve
from stretto.numpy.arguments import inexact_values, weakly_inexact
from stretto.numpy.arithmetic import square
from stretto.numpy.elementary import exp, log, sqrt
from stretto.numpy.extrema import argmax
from stretto.numpy.joining import concatenate
from stretto.numpy.linalg.factorizations import cholesky
from stretto.numpy.linalg.systems import inv
from stretto.numpy.logic import isnan
from stretto.numpy.manipulation import atleast_1d, atleast_2d, expand_dims, moveaxis
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import searchsorted, where
from stretto.numpy.sorting import argsort
from stretto.numpy.sorting import sort as sort_
from stretto.numpy.statistics import var
from stretto.numpy.without_nan import nanvar
from stretto.random.discrete_draws import choice
from stretto.random.distributions import normal
from stretto.random.keys import split
from stretto.special import logsumexp, ndtr


class ModeResult(NamedTuple):
    """The most frequent value, and how often it occurs."""

    mode: Array
    count: Array


def _along(
    x: Array, axis: Axis, caller: str, fun: Callable[[Array], Tree]
) -> tuple[Tree, int, Shape]:
    """Return ``fun`` of each vector along an axis, the axis, and the sizes of the other axes."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = canonical_axis(axis, x.ndim, caller)
    last = moveaxis(x, axis, -1)
    rows = reshape(last, (math.prod(last.shape[:-1]), last.shape[-1]))
    return vmap(fun)(rows), axis, last.shape[:-1]


def _check_nan_policy(caller: str, nan_policy: str, *others: str) -> None:
    allowed = ("propagate", *others)
    if nan_policy not in allowed:
        raise NotImplementedError(
            f"{caller}: nan_policy must be {' or '.join(map(repr, allowed))}, got "
            f"{nan_policy!r}; select the values with where="
        )


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: Axis = None, nan_policy: str = "propagate"
) -> Array:
    """Rank the elements by size, from 1.

    Args:
        a: an array.
        method: what equal elements get: ``"average"`` (floats), ``"min"`` or ``"max"`` of their
            ranks; ``"dense"``, ``"min"`` without gaps; or ``"ordinal"``, ranks in the order in
            which they stand.
        axis: the axis to rank along; by default all elements are ranked together.
        nan_policy: must be ``"propagate"``.

    Returns:
        The ranks; all NaN where there is a NaN along the axis.

    Raises:
        ValueError: there is no such method, or the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``rankdata``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import rankdata
    >>> rankdata(snp.array([3.0, 1.0, 3.0]))
    Array([2.5, 1. , 2.5], dtype=float32)
    """
    _check_nan_policy("rankdata", nan_policy)
    x = as_value(a, "rankdata", "a")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(
            f"rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got "
            f"{method!r}"
        )
    if not x.size:
        return inexact_values("rankdata", a=x)[0]

    def rank(row: Array) -> Array:
        if method == "ordinal":
            return argsort(argsort(row)) + 1
        ordered = sort_(row)
        if method == "dense":
            is_new = concatenate(
                [full_like(ordered[:1], True, np.dtype(bool)), ordered[1:] != ordered[:-1]]
            )
            return cumsum(is_new.astype(int))[searchsorted(ordered, row)]
        first = searchsorted(ordered, row) + 1
        last = searchsorted(ordered, row, side="right")
        return {"min": first, "max": last, "average": (first + last) / 2}[method]

    out, position, others = _along(x, axis, "rankdata", rank)
    out = moveaxis(reshape(out, (*others, out.shape[-1])), -1, position)
    if is_inexact(x.dtype):
        missing = any_(isnan(x), axis=axis, keepdims=axis is not None)
        out = where(missing, math.nan, weakly_inexact(out))
    return reshape(out, (-1,)) if axis is None else out


def mode(
    a: ArrayLike, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Find the most frequent value along an axis, and its count.

    Args:
        a: an array.
        axis: the axis to go along; None for all elements.
        nan_policy: must be ``"propagate"``; NaN equal one another, and come after all numbers.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        The values, the smallest of equally frequent ones, and their counts.

    Raises:
        ValueError: ``a`` is empty, or the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``mode``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import mode
    >>> mode(snp.array([3, 1, 3, 1])).mode
    Array(1, dtype=int32)
    """
    _check_nan_policy("mode", nan_policy)
    x = as_value(a, "mode", "a")

    def most_frequent(row: Array) -> tuple[Array, Array]:
        ordered = sort_(row)
        counts = searchsorted(ordered, ordered, side="right") - searchsorted(ordered, ordered)
        position = argmax(counts)
        return ordered[position], counts[position]

    if without_elements(x.size, "mode"):
        raise ValueError(f"mode: {x.type} has no elements")
    (value, count), position, others = _along(x, axis, "mode", most_frequent)
    parts = [reshape(v, others) for v in (value, count)]
    if keepdims:
        new_axes = tuple(range(x.ndim)) if axis is None else position
        parts = [expand_dims(v, new_axes) for v in parts]
    return ModeResult(*parts)


@rounded_once
def sem(
    a: ArrayLike, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Array:  # fmt: skip
    """Compute the standard error of the mean along an axis.

    Args:
        a: an array.
        axis: the axis to go along; None for all elements.
        ddof: what is subtracted from the count in the variance.
        nan_policy: ``"propagate"``, or ``"omit"`` to leave out NaN.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        The standard deviation over the root of the count.

    Raises:
        ValueError: the axis is out of bounds.
        NotImplementedError: there is no such ``nan_policy``.

    As SciPy's ``sem``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import sem
    >>> sem(snp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    _check_nan_policy("sem", nan_policy, "omit")
    (x,) = inexact_values("sem", a=a)
    axis = None if axis is None else canonical_axis(axis, x.ndim, "sem")
    if nan_policy == "omit":
        count = sum_(~isnan(x), axis=axis, keepdims=keepdims)
        spread = nanvar(x, axis=axis, ddof=ddof, keepdims=keepdims)
        return root_of_squares(spread / convert(count, x.dtype))
    count = x.size if axis is None else x.shape[axis]
    spread = var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    return root_of_squares(spread / convert(as_value(count), x.dtype))


@register_pytree_node_class
class gaussian_kde:
    """A density estimate by a Gaussian around each sample.

    An estimate is a tree of arrays, and may pass through transformations.

    Args:
        dataset: the samples, ``[dimensions, samples]`` or ``[samples]``.
        bw_method: the factor that multiplies the root of the samples' covariance: ``"scott"``, the
            default, ``"silverman"``, a number, or a function of the estimate.
        weights: the weights of the samples, ``[samples]``; by default equal.

    Raises:
        ValueError: there are fewer than two samples, the weights have another shape, or there is no
            such ``bw_method``.

    As SciPy's ``gaussian_kde``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import gaussian_kde
    >>> density = gaussian_kde(snp.array([0.0, 1.0, 2.0]))
    >>> density.integrate_box_1d(-50.0, 1.0).round(4)
    Array(0.5, dtype=float32)
    """

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        data = atleast_2d(*inexact_values("gaussian_kde", dataset=dataset))
        if data.size <= 1:
            raise ValueError(f"gaussian_kde: expected more than one sample, got {data.type}")
        n = data.shape[1]
        if weights is None:
            shares = broadcast_to(as_value(1 / n).astype(data.dtype), (n,))
        else:
            shares = atleast_1d(as_value(weights, "gaussian_kde", "weights")).astype(data.dtype)
            if shares.shape != (n,):
                raise ValueError(
                    f"gaussian_kde: expected weights of shape ({n},), got {shares.type}"
                )
            shares = shares / sum_(shares)
        self.dataset, self.weights = data, shares
        self.neff = 1 / sum_(square(shares))
        self.factor = self._bandwidth(bw_method)
        mean = sum_(data * shares, 1, keepdims=True)
        gap = data - mean
        # the unbiased estimate with weights: over 1 - Σ w²
        covariance = matmul(gap * shares, gap.T) / (1 - sum_(square(shares)))
        self.covariance = covariance * square(self.factor)

    def _bandwidth(
        self, method: str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None
    ) -> ArrayLike:
        if method is None or method == "scott":
            return self.scotts_factor()
        if isinstance(method, str):
            if method != "silverman":
                raise ValueError(
                    f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a "
                    f"function, got {method!r}"
                )
            return self.silverman_factor()
        return method(self) if callable(method) else as_value(method, "gaussian_kde", "bw_method")

    def scotts_factor(self) -> Array:
        """Compute Scott's bandwidth: n^(-1/(d + 4)) of the effective number of samples.

        Returns:
            The factor, a scalar.
        """
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Array:
        """Compute Silverman's bandwidth: (n (d + 2) / 4)^(-1/(d + 4)).

        Returns:
            The factor, a scalar.
        """
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    @property
    def inv_cov(self) -> Array:
        """The inverse of the kernel's covariance."""
        return inv(self.covariance)

    def tree_flatten(self) -> tuple[tuple[Tree, ...], None]:
        """Give its arrays, as a node of trees.

        Returns:
            The arrays, and None.
        """
        return (self.dataset, self.weights, self.neff, self.factor, self.covariance), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Tree, ...]) -> gaussian_kde:
        """Make an estimate of these arrays.

        Args:
            children: the arrays, as ``tree_flatten`` gives them.

        Returns:
            The estimate.
        """
        estimate = object.__new__(cls)
        (
            estimate.dataset,
            estimate.weights,
            estimate.neff,
            estimate.factor,
            estimate.covariance,
        ) = children
        return estimate

    def _points(self, x: ArrayLike, caller: str, argument: str = "points") -> Array:
        points = atleast_2d(*inexact_values(f"gaussian_kde.{caller}", **{argument: x}))
        if points.shape[0] == 1 and points.shape[1] == self.d and self.d > 1:
            points = points.T
        if points.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde.{caller}: expected {argument} of {self.d} dimensions, got "
                f"{points.type}"
            )
        return points.astype(self.dataset.dtype)

    def _log_kernels(self, points: Array, covariance: Array) -> Array:
        """Return the log density of each sample's Gaussian (rows) at each point (columns)."""
        factor = cholesky(covariance)
        white = [
            triangular_solve(factor, v, left_side=True, lower=True) for v in (self.dataset, points)
        ]
        gap = reshape(white[0], (self.d, self.n, 1)) - reshape(white[1], (self.d, 1, -1))
        spread = sum_(log(factor.diagonal()))
        return -sum_(square(gap), 0) / 2 - self.d * math.log(2 * math.pi) / 2 - spread

    def logpdf(self, x: ArrayLike) -> Array:
        """Compute the logarithm of the density.

        Args:
            x: the points, ``[dimensions, points]``.

        Returns:
            The logarithms, ``[points]``.

        Raises:
            ValueError: the points have a different number of dimensions.
        """
        return self._logpdf(self._points(x, "logpdf", "x"))

    def _logpdf(self, points: Array) -> Array:
        kernels = self._log_kernels(points, self.covariance)
        return logsumexp(kernels, axis=0, b=reshape(self.weights, (-1, 1)))

    def pdf(self, x: ArrayLike) -> Array:
        """Compute the density.

        Args:
            x: the points, ``[dimensions, points]``.

        Returns:
            The density at each, ``[points]``.

        Raises:
            ValueError: the points have a different number of dimensions.
        """
        return exp(self._logpdf(self._points(x, "pdf", "x")))

    def evaluate(self, points: ArrayLike) -> Array:
        """Compute the density, as ``pdf`` does.

        Args:
            points: the points, ``[dimensions, points]``.

        Returns:
            The density at each, ``[points]``.

        Raises:
            ValueError: the points have a different number of dimensions.
        """
        return exp(self._logpdf(self._points(points, "evaluate")))

    __call__ = evaluate

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Integrate the density times a Gaussian.

        Args:
            mean: the mean of the Gaussian, ``[dimensions]``.
            cov: its covariance, ``[dimensions, dimensions]``.

        Returns:
            The integral, a scalar.

        Raises:
            ValueError: ``mean`` or ``cov`` has another shape.
        """
        caller = "gaussian_kde.integrate_gaussian"
        center = atleast_1d(as_value(mean, caller, "mean"))
        spread = atleast_2d(as_value(cov, caller, "cov"))
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ValueError(
                f"{caller}: expected mean [{self.d}] and cov [{self.d}, {self.d}], got "
                f"{center.type} and {spread.type}"
            )
        point = self._points(reshape(center, (-1, 1)), "integrate_gaussian", "mean")
        kernels = self._log_kernels(point, self.covariance + spread.astype(self.dataset.dtype))
        return sum_(exp(kernels[:, 0]) * self.weights)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Compute the probability of an interval, for samples of one dimension.

        Args:
            low: its lower end, a number.
            high: its upper end, a number.

        Returns:
            The probability, a scalar.

        Raises:
            ValueError: the samples have more than one dimension, or an end is not a number.
        """
        caller = "gaussian_kde.integrate_box_1d"
        if self.d != 1:
            raise ValueError(f"{caller}: the samples have {self.d} dimensions, not one")
        bounds = promote_values(caller, low, high, inexact=True)
        if bounds[0].ndim:
            raise ValueError(f"{caller}: expected two numbers, got shape {bounds[0].shape}")
        width = sqrt(self.covariance[0, 0])
        ends = [(end.astype(width.dtype) - self.dataset[0]) / width for end in bounds]
        return sum_(self.weights * (ndtr(ends[1]) - ndtr(ends[0])))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Integrate the product of two estimates.

        Args:
            other: an estimate of as many dimensions.

        Returns:
            The integral, a scalar.

        Raises:
            ValueError: the dimensions differ.
        """
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde.integrate_kde: the estimates have {self.d} and {other.d} dimensions"
            )
        kernels = self._log_kernels(other.dataset, self.covariance + other.covariance)
        return matmul(matmul(self.weights, exp(kernels)), other.weights)

    def resample(self, key: Key, shape: ShapeLike = ()) -> Array:
        """Draw samples from the estimate.

        Args:
            key: the key.
            shape: how many; by default one.

        Returns:
            The samples, ``[dimensions, *shape]``.
        """
        index_key, noise_key = split(key)
        index = choice(index_key, self.n, shape, p=self.weights)
        noise = normal(noise_key, (self.d, *index.shape), self.dataset.dtype)
        factor = cholesky(self.covariance)
        flat = matmul(factor, reshape(noise, (self.d, -1)))
        return self.dataset[:, index] + reshape(flat, noise.shape)

    def integrate_box(
        self, low_bounds: object, high_bounds: object, maxpts: object = None
    ) -> NoReturn:
        """Raise: integrals over several dimensions are not available.

        Args:
            low_bounds: not used.
            high_bounds: not used.
            maxpts: not used.

        Returns:
            Nothing: it always raises.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.integrate_box: not available; use integrate_box_1d for one dimension, or "
            "average over resample()"
        )

    def set_bandwidth(self, bw_method: object = None) -> NoReturn:
        """Raise: estimates are immutable.

        Args:
            bw_method: not used.

        Returns:
            Nothing: it always raises.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: estimates are immutable; make another with bw_method="
        )

"""The part of results and of gradients that is defined, whoever computes it.

Singular vectors have any phase, a sort puts equal elements in any order, and some results are for a
backward pass alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.torch.programs.torch_graph import Node

__all__ = ["of_any_phase", "of_gradients", "of_results", "weights"]

FIRST = {
    "aten._ctc_loss.Tensor": 1,
    "aten._ctc_loss.default": 1,
    "aten._embedding_bag.default": 1,
    "aten._embedding_bag_forward_only.default": 1,
    "aten._linalg_det.default": 1,
    "aten._linalg_slogdet.default": 2,
    "aten._linalg_solve_ex.default": 1,
    "aten.linalg_lu_factor_ex.default": 1,
    "aten.log_sigmoid_forward.default": 1,
    "aten.nll_loss_forward.default": 1,
    "aten.nll_loss2d_forward.default": 1,
}
"""Operations of which only the first results are its user's; the rest is for its backward pass."""

BY_INDEX = {
    "aten.kthvalue.default": 2,
    "aten.median.dim": 1,
    "aten.mode.default": 1,
    "aten.nanmedian.dim": 1,
    "aten.sort.default": 1,
    "aten.sort.stable": 1,
    "aten.topk.default": 2,
}
"""Operations that give values and their places, which may be others where values are equal.

By the place of the argument that names the axis.
"""

HERMITIAN = ("aten.linalg_cholesky_ex.default",)
"""Operations of a Hermitian matrix, whose complex gradient is defined up to what is not so."""

VECTORS = {
    "aten._linalg_eigh.default": (1,),
    "aten._linalg_svd.default": (0, 2),
    "aten.linalg_eig.default": (1,),
}
"""Results that are vectors of any phase."""

FACTORS = {"aten.cholesky_inverse.default": (0, 1), "aten.cholesky_solve.default": (1, 2)}
"""Which argument is a triangular factor, and which says that it is the upper one."""


def of_results(name: str, node: Node, arrays: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Return what is defined of the results of an operation."""
    if name in FIRST:
        return list(results[: FIRST[name]])
    if name in VECTORS:
        return _decomposed(name, arrays[0], [np.asarray(x) for x in results])
    if name in BY_INDEX and len(results) == 2 and arrays[0].ndim:
        values, places = map(np.asarray, results)
        return [values, _taken(arrays[0], places, _axis(node, BY_INDEX[name]))]
    return list(results)


def _axis(node: Node, place: int) -> int:
    return node.args[place] if len(node.args) > place else dict(node.kwargs).get("dim", -1)


def _taken(a: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    """Return the elements at places along an axis, which may be left out where there is one."""
    if places.ndim < a.ndim:
        return np.squeeze(np.take_along_axis(a, np.expand_dims(places, axis), axis), axis)
    return np.take_along_axis(a, places, axis)


def _decomposed(name: str, a: np.ndarray, results: list[np.ndarray]) -> list[Any]:
    """Return the values, and what the vectors give for the matrix."""
    if name == "aten._linalg_svd.default":
        u, s, vh = results
        k = s.shape[-1]
        same = [(u[..., :k] * s[..., None, :]) @ vh[..., :k, :]] if u.size and vh.size else []
        return [s, *same, *[_gram(x) for x in (u, vh) if x.size]]
    w, v = results
    if not v.size:
        return [w]
    if name == "aten._linalg_eigh.default":
        return [w, (v * w[..., None, :]) @ _adjoint(v), _gram(v)]
    powers = [np.sum(w**n, -1) for n in range(1, 4)]  # eigenvalues come in any order
    return [*powers, a.astype(v.dtype) @ v - v * w[..., None, :], np.linalg.norm(v, axis=-2)]


def _gram(v: np.ndarray) -> np.ndarray:
    """Return the products of the vectors with each other, along the shorter side."""
    rows, columns = v.shape[-2:]
    return _adjoint(v) @ v if rows >= columns else v @ _adjoint(v)


def _adjoint(v: np.ndarray) -> np.ndarray:
    return np.swapaxes(v, -1, -2).conj()


def of_any_phase(name: str, k: int, x: Any) -> Any:
    """Return the squares of the sizes of a result's elements if their phases are arbitrary."""
    return (x * x.conj()).real if k in VECTORS.get(name, ()) else x


def of_gradients(name: str, node: Node, gradients: Sequence[Any]) -> list[Any]:
    """Return what is defined of the gradients.

    Of a factor it is that by the triangle that is read. Of a complex Hermitian matrix it is the
    Hermitian part: PyTorch adds one that does not count, as the matrix stays Hermitian.
    """
    found = [np.asarray(g) for g in gradients]
    if name in FACTORS:
        which, place = FACTORS[name]
        given = node.args[place] if len(node.args) > place else dict(node.kwargs).get("upper")
        found[which] = np.triu(found[which]) if given else np.tril(found[which])
    if name in HERMITIAN:
        found = [(g + _adjoint(g)) / 2 if g.dtype.kind == "c" else g for g in found]
    return found


def weights(shape: Any, k: int) -> np.ndarray:
    """Draw numbers from a half to three halves, by which a result's elements are summed.

    Float32 has all of them, so that in float64 they are the same.
    """
    return np.random.default_rng(k).uniform(0.5, 1.5, tuple(shape)).astype(np.float32).astype(float)

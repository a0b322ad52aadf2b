"""Normalization, pooling, resizing, recurrent networks, bags of embeddings, and losses.

PyTorch's numbers for the reduction of a loss are 0 for none, 1 for the mean, 2 for the sum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.types import is_inexact
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto.nn import functional as F
from stretto.nn.functional.recurrence import GRU, LSTM, RELU, TANH, network
from stretto.torch.slopes import binary_cross_entropy, bounded

# Normalization. PyTorch gives the statistics beside the result, for its backward pass.


def _batch_norm(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: Any,
    eps: float,
) -> tuple[Any, Any, Any, Any, Any]:
    """Return the result, the batch's mean and inverse deviation, and the next running statistics.

    For ``momentum`` the number of batches so far, an array of integers, these are plain means.
    """
    if not training:
        out = F.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
        empty = snp.zeros(0, x.dtype)
        return out, empty, empty, running_mean, running_var
    mean, variance = F.batch_statistics(x)
    out = F.batch_norm(x, mean, variance, weight, bias, eps=eps)
    count = x.size // x.shape[1]
    inverse = 1 / snp.sqrt(variance + eps)
    if running_mean is None:
        return out, mean, inverse, None, None
    if isinstance(momentum, Value) and not is_inexact(momentum.dtype):
        momentum = 1 / momentum
    still = lax.stop_gradient((mean, variance * (count / max(count - 1, 1))))
    moved = [
        old + momentum * (new.astype(old.dtype) - old)
        for old, new in zip((running_mean, running_var), still, strict=True)
    ]
    return out, mean, inverse, *moved


def _batch_norm_in_evaluation(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    return _batch_norm(x, weight, bias, mean, variance, False, momentum, eps)[:3]


def _batch_norm_without_statistics(
    x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return _batch_norm(x, weight, bias, None, None, True, momentum, eps)[:3]


def _native_layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = snp.mean(x, axes, keepdims=True)
    inverse = 1 / snp.sqrt(snp.var(x, axes, keepdims=True) + eps)
    return F.layer_norm(x, tuple(shape), weight, bias, eps), mean, inverse


def _layer_norm(
    x: Any,
    shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    return F.layer_norm(x, tuple(shape), weight, bias, eps)


def _native_group_norm(
    x: Any, weight: Any, bias: Any, n: int, channels: int, size: int, groups: int, eps: float
) -> Any:
    rows = x.reshape((n, groups, channels // groups * size))
    mean = snp.mean(rows, -1)
    inverse = 1 / snp.sqrt(snp.var(rows, -1) + eps)
    return F.group_norm(x, groups, weight, bias, eps), mean, inverse


def _group_norm(
    x: Any,
    groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    return F.group_norm(x, groups, weight, bias, eps)


def _rms_norm(x: Any, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    return F.rms_norm(x, tuple(shape), weight, eps)


# Pooling: PyTorch's empty stride is the size of the window.


def _pooled(pool: Callable[..., Any]) -> Callable[..., Any]:
    def pooled(x: Any, kernel_size: Sequence[int], stride: Sequence[int] = (), *more: Any) -> Any:
        n = len(kernel_size)
        sizes = [
            tuple(part) * n if isinstance(part, tuple) and len(part) == 1 else part
            for part in (kernel_size, stride or kernel_size, *more)
        ]
        return pool(x, *sizes)

    return pooled


def _with_places(pool: Callable[..., Any]) -> Callable[..., Any]:
    pooled = _pooled(lambda *args: pool(*args, return_indices=True))

    def both(
        x: Any,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        return pooled(x, kernel_size, stride, padding, dilation, ceil_mode)

    return both


def _adaptive(pool: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, output_size: pool(x, tuple(output_size))


def _adaptive_with_places(pool: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, output_size: pool(x, tuple(output_size), return_indices=True)


# Resizing


def _resized(mode: str, aligns: bool) -> Callable[..., Any]:
    def resized(x: Any, output_size: Sequence[int] | None, *more: Any) -> Any:
        corners, factors = more if aligns else (None, *more)
        if output_size is not None:
            return F.interpolate(x, tuple(output_size), mode=mode, align_corners=corners)
        return F.interpolate(x, scale_factor=tuple(factors), mode=mode, align_corners=corners)

    return resized


def _smoothed(mode: str) -> Callable[..., Any]:
    def resized(
        x: Any,
        output_size: Sequence[int],
        align_corners: bool,
        scale_h: float | None = None,
        scale_w: float | None = None,
    ) -> Any:
        if not is_inexact(x.dtype):
            raise NotImplementedError(
                f"interpolate: antialias=True rounds {x.dtype} as it goes: give floats"
            )
        how: Any = {"mode": mode, "align_corners": align_corners, "antialias": True}
        if scale_h is None or scale_w is None:
            return F.interpolate(x, tuple(output_size), **how)
        found = F.interpolate(x, scale_factor=(scale_h, scale_w), **how)
        if found.shape[2:] != tuple(output_size):
            raise NotImplementedError(
                f"interpolate: the factors {(scale_h, scale_w)} give the sizes {found.shape[2:]}, "
                f"and {tuple(output_size)} are asked for as well: give one of the two"
            )
        return found

    return resized


def _unnormalized(grid: Any, size: int, align_corners: bool) -> Any:
    """Return the indices of elements for numbers from -1 to 1."""
    if align_corners:
        return (grid + 1) / 2 * (size - 1)
    return ((grid + 1) * size - 1) / 2


def _reflected(place: Any, size: int, align_corners: bool) -> Any:
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return snp.zeros_like(place)
    distance = place - low
    distance = snp.where(distance < 0, -distance, distance)
    turns, rest = snp.floor(distance / span), snp.fmod(distance, span)
    return snp.where(turns % 2 == 0, rest, span - rest) + low


def _grid_sampled(x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    """Return elements at places between others: linear (0) or nearest (1), in 2 or 3 dimensions.

    Outside there are zeros (0), the border (1), or reflections (2).
    """
    if interpolation == 2:
        return _bicubic(x, grid, padding, align_corners)
    sizes = x.shape[2:]
    places = [
        _padded(_unnormalized(grid[..., -1 - k], n, align_corners), n, padding, align_corners)
        for k, n in enumerate(sizes)
    ]
    if interpolation == 1:
        return _elements(x, [snp.round(place) for place in places])
    low = [snp.floor(place) for place in places]
    out = 0
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weight: Any = 1
        for side, place, start in zip(corner, places, low, strict=True):
            weight = weight * (place - start if side else 1 - (place - start))
        at = [start + side for start, side in zip(low, corner, strict=True)]
        out = out + _elements(x, at) * weight[:, None]
    return out


def _padded(place: Any, size: int, padding: int, align_corners: bool) -> Any:
    if padding == 0:
        return place
    if padding == 2:
        place = _reflected(place, size, align_corners)
    return bounded(place, 0, size - 1)


def _elements(x: Any, at: Sequence[Any]) -> Any:
    """Return the elements at whole places, as floats; zeros outside."""
    batch = snp.arange(x.shape[0]).reshape((-1,) + (1,) * (at[0].ndim - 1))
    inside: Any = True
    index = []
    for place, n in zip(at, x.shape[2:], strict=True):
        inside = inside & (place >= 0) & (place <= n - 1)
        index.append(snp.clip(snp.nan_to_num(place), 0, n - 1).astype(snp.int32))
    found = snp.moveaxis(snp.moveaxis(x, 1, -1)[(batch, *index)], -1, 1)
    return snp.where(inside[:, None], found, 0)


def _bicubic(x: Any, grid: Any, padding: int, align_corners: bool) -> Any:
    height, width = x.shape[2:]
    across = _unnormalized(grid[..., 0], width, align_corners)
    down = _unnormalized(grid[..., 1], height, align_corners)
    left, top = snp.floor(across), snp.floor(down)
    out = 0
    for j, row in enumerate(_cubic(down - top)):
        for i, column in enumerate(_cubic(across - left)):
            at = [
                _padded(top + (j - 1), height, padding, align_corners),
                _padded(left + (i - 1), width, padding, align_corners),
            ]
            out = out + _elements(x, at) * (row * column)[:, None]
    return out


def _cubic(t: Any, a: float = -0.75) -> list[Any]:
    """Return the weights of the four elements around a place, by Keys's convolution."""

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


# Packed sequences


def _steps(lengths: Any, steps: int) -> Any:
    """Return which steps each sequence has: (steps, sequences), True for the first ones.

    Raises ``ValueError`` where lengths are known, and are none that PyTorch packs.
    """
    if not isinstance(lengths, Tracer):
        known = np.asarray(lengths)
        if known.size and (known.min() < 1 or known.max() > steps):
            raise ValueError(
                f"pack_padded_sequence: lengths must be from 1 to the {steps} steps that the "
                f"rectangle has, got {known.tolist()}"
            )
        if (known[1:] > known[:-1]).any():
            raise ValueError(
                f"pack_padded_sequence: lengths must be sorted, the longest first, got "
                f"{known.tolist()}; enforce_sorted=False takes them as they are"
            )
    return snp.arange(steps)[:, None] < lengths[None, :]


_KINDS = {"GRU": GRU, "LSTM": LSTM, "RNN_RELU": RELU, "RNN_TANH": TANH}


def _recurrent(
    data: Any,
    mask: Any,
    places: Any,
    states: Sequence[Any],
    weights: Sequence[Any],
    mode: str,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Any, ...]:
    """Return a recurrent network of a packed sequence: its elements, and the last states of each.

    ``places`` are those of the elements in the rectangle (steps, sequences), laid out in rows.
    """
    rows = snp.zeros((mask.size, data.shape[1]), data.dtype).at[places].set(data)
    x = rows.reshape((*mask.shape, data.shape[1]))
    hx = tuple(states) if len(states) > 1 else states[0]
    options = (has_biases, num_layers, dropout, train, bidirectional, False, None, mask)
    out, last = network(_KINDS[mode], x, hx, weights, *options)
    return snp.take(out.reshape((mask.size, -1)), places, 0), *last


def _starts(sample: Any, size: int, count: int, window: int, dtype: Any) -> Any:
    """Return where along an axis the windows begin, for numbers from 0 to 1 of one window's place.

    Window k begins at floor((k + u) s) - floor(u s), s = (size - window) / (count - 1), and the
    last at the end (Graham, Fractional Max-Pooling, 2014). Of numbers below 0, which PyTorch takes
    as well, it rounds the products towards 0.
    """
    last = snp.full((*sample.shape, 1), size - window, snp.int32)
    if count == 1:
        return last
    step = snp.asarray(size - window, dtype) / snp.asarray(count - 1, dtype)
    k = snp.arange(count - 1).astype(dtype)
    places = snp.trunc((k + sample[..., None]) * step) - snp.trunc(sample * step)[..., None]
    return snp.concatenate([places.astype(snp.int32), last], -1)


def _fractional(rank: int) -> Callable[..., Any]:
    def pooled(
        x: Any, kernel_size: Sequence[int], output_size: Sequence[int], samples: Any
    ) -> tuple[Any, ...]:
        """Return the maxima, and where in their plane; samples are of the last axis first."""
        windows = tuple(kernel_size) * (rank if len(kernel_size) == 1 else 1)
        planes = x if x.ndim == rank + 2 else x[None]
        batch, channels, *sizes = planes.shape
        own = samples[:batch]
        order = range(rank)[::-1] if rank == 2 else range(rank)
        at: list[Any] = [
            snp.arange(batch).reshape((-1,) + (1,) * (2 * rank + 1)),
            snp.arange(channels).reshape((-1,) + (1,) * (2 * rank)),
        ]
        places: Any = 0
        for axis, drawn in zip(range(rank), order, strict=True):
            n, m, k = sizes[axis], output_size[axis], windows[axis]
            starts = _starts(own[..., drawn], n, m, k, x.dtype)
            index = starts[..., None] + snp.arange(k)
            shape = [batch, channels] + [1] * (2 * rank)
            shape[2 + axis], shape[2 + rank + axis] = m, k
            at.append(index.reshape(shape))
            places = places * n + at[-1]
        found = planes[tuple(at)]
        flat = (*found.shape[: 2 + rank], math.prod(windows))
        places = snp.broadcast_to(places, found.shape).reshape(flat)
        found = found.reshape(flat)
        best = snp.argmax(found, -1, keepdims=True)
        parts = [snp.take_along_axis(part, best, -1)[..., 0] for part in (found, places)]
        return tuple(parts if x.ndim == rank + 2 else [part[0] for part in parts])

    return pooled


_SUM, _MEAN, _MAX = 0, 1, 2


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Return the sums, means or maxima of bags that begin at ``offsets``; an empty one is 0.

    What PyTorch keeps beside them for its backward pass, of sizes that go by how it computed them,
    is None.
    """
    if scale_grad_by_freq:
        raise NotImplementedError(
            "embedding_bag: gradients divided by how often an index occurs are not supported"
        )
    starts = offsets[:-1] if include_last_offset else offsets
    bag = snp.sum(snp.arange(indices.shape[0])[:, None] >= starts[None, :], -1) - 1
    counts = indices != padding_idx if padding_idx >= 0 else snp.ones(indices.shape, bool)
    shape = (starts.shape[0], weight.shape[1])
    rows = weight[indices]
    if mode == _MAX:
        return _greatest(rows, bag, counts, shape), None, None, None
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    out = snp.zeros(shape, rows.dtype).at[bag].add(snp.where(counts[:, None], rows, 0))
    if mode == _MEAN:
        many = snp.zeros(shape[0], snp.int32).at[bag].add(counts.astype(snp.int32))
        out = out / snp.maximum(many, 1)[:, None]
    return out, None, None, None


def _greatest(rows: Any, bag: Any, counts: Any, shape: tuple[int, int]) -> Any:
    """Return the greatest element of each bag and column: the first of equal ones, as its slope."""
    n = rows.shape[0]
    still = snp.where(counts[:, None], lax.stop_gradient(rows), -snp.inf)
    most = snp.full(shape, -snp.inf, rows.dtype).at[bag].max(still)
    here = counts[:, None] & (still == most[bag])
    places = snp.where(here, snp.arange(n)[:, None], n)
    first = snp.full(shape, n, places.dtype).at[bag].min(places)
    if not n:
        return snp.zeros(shape, rows.dtype)
    found = snp.take_along_axis(rows, snp.minimum(first, n - 1), 0)
    return snp.where(first < n, found, 0)


_REDUCTIONS = ("none", "mean", "sum")


def _simple(loss: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Return a loss of input, target and a reduction; ``names`` are what comes after it."""

    def reduced(x: Any, target: Any, reduction: int = 1, *more: Any, **how: Any) -> Any:
        how |= dict(zip(names, more, strict=False))
        return loss(x, target, reduction=_REDUCTIONS[reduction], **how)

    return reduced


def _binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    loss = binary_cross_entropy(x, target)
    loss = loss if weight is None else loss * weight
    return [lambda x: x, snp.mean, snp.sum][reduction](loss)


def _multilabel_margin(x: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """Return the loss, and which classes are among the targets."""
    if not x.ndim:
        loss, among = _multilabel_margin(x[None], target[None], reduction)
        return loss, among[0]
    loss = F.multilabel_margin_loss(x, target, reduction=_REDUCTIONS[reduction])
    counts = snp.cumprod(target >= 0, -1, dtype=snp.int32) > 0
    here = snp.arange(x.shape[-1]) == target[..., None]
    return loss, snp.any(here & counts[..., None], -2).astype(x.dtype)


def _cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    return F.cross_entropy(
        x,
        target,
        weight,
        reduction=_REDUCTIONS[reduction],
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _negative_log_likelihood(
    x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Any, Any]:
    """Return the loss, and the sum of the weights that it was divided by."""
    loss = F.nll_loss(
        x, target, weight, reduction=_REDUCTIONS[reduction], ignore_index=ignore_index
    )
    if reduction == 0:
        return loss, snp.zeros((), x.dtype)
    counts = target != ignore_index
    weights = (
        counts if weight is None else snp.where(counts, weight[snp.where(counts, target, 0)], 0)
    )
    return loss, snp.sum(weights).astype(x.dtype)


def _with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    return F.binary_cross_entropy_with_logits(
        x, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


@custom_jvp
def _with_slope(value: Any, other: Any) -> Any:
    return value


_with_slope.defjvps(lambda dv, out, v, o: dv, lambda do, out, v, o: do)


def _connectionist(
    x: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Any, None]:
    """Return the loss of each example; what PyTorch keeps beside it is None.

    Its gradient is PyTorch's, which takes ``x`` for logarithms of probabilities that add up to 1:
    the sum of these is part of it.
    """
    if targets.ndim == 1 and x.shape[1] == 1:
        targets = targets[None]
    of_input, of_target = [snp.asarray(n).reshape(-1) for n in (input_lengths, target_lengths)]
    loss = F.ctc_loss(x, targets, of_input, of_target, blank, reduction="none")
    counted = snp.arange(x.shape[0])[:, None] < of_input
    total = snp.sum(snp.where(counted[..., None], snp.exp(x), 0), (0, 2))
    loss = _with_slope(loss, total)
    return snp.where(snp.isinf(loss), 0, loss) if zero_infinity else loss, None


TABLE: dict[str, Callable[..., Any]] = {
    "aten._native_batch_norm_legit.no_stats": _batch_norm_without_statistics,
    "aten._native_batch_norm_legit_functional.default": _batch_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm_in_evaluation,
    "aten.group_norm.default": _group_norm,
    "aten.layer_norm.default": _layer_norm,
    "aten.native_group_norm.default": _native_group_norm,
    "aten.native_layer_norm.default": _native_layer_norm,
    "aten.rms_norm.default": _rms_norm,
    **{
        f"aten.{kind}_pool{n}d.default": _pooled(getattr(F, f"{kind}_pool{n}d"))
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
    **{
        f"aten.max_pool{n}d_with_indices.default": _with_places(getattr(F, f"max_pool{n}d"))
        for n in (2, 3)
    },
    **{
        f"aten.adaptive_avg_pool{n}d.default": _adaptive(getattr(F, f"adaptive_avg_pool{n}d"))
        for n in (1, 2, 3)
    },
    "aten._adaptive_avg_pool2d.default": _adaptive(F.adaptive_avg_pool2d),
    "aten._adaptive_avg_pool3d.default": _adaptive(F.adaptive_avg_pool3d),
    **{
        f"aten.adaptive_max_pool{n}d.default": _adaptive_with_places(
            getattr(F, f"adaptive_max_pool{n}d")
        )
        for n in (1, 2, 3)
    },
    "aten.upsample_bicubic2d.vec": _resized("bicubic", True),
    "aten.upsample_bilinear2d.vec": _resized("bilinear", True),
    "aten.upsample_linear1d.vec": _resized("linear", True),
    "aten.upsample_nearest1d.vec": _resized("nearest", False),
    "aten.upsample_nearest2d.vec": _resized("nearest", False),
    "aten.upsample_nearest3d.vec": _resized("nearest", False),
    "aten.upsample_trilinear3d.vec": _resized("trilinear", True),
    "aten._upsample_bicubic2d_aa.default": _smoothed("bicubic"),
    "aten._upsample_bilinear2d_aa.default": _smoothed("bilinear"),
    "aten.grid_sampler.default": _grid_sampled,
    "aten.grid_sampler_2d.default": _grid_sampled,
    "aten.grid_sampler_3d.default": _grid_sampled,
    "aten.im2col.default": F.unfold,
    "aten.col2im.default": F.fold,
    "aten.gru.input": F.gru,
    "aten.gru_cell.default": F.gru_cell,
    "aten.lstm.input": F.lstm,
    "aten.lstm_cell.default": F.lstm_cell,
    "aten.rnn_relu.input": F.rnn_relu,
    "aten.rnn_relu_cell.default": F.rnn_relu_cell,
    "aten.rnn_tanh.input": F.rnn_tanh,
    "aten.rnn_tanh_cell.default": F.rnn_tanh_cell,
    "stretto.recurrent.default": _recurrent,
    "stretto.steps.default": _steps,
    "aten.fractional_max_pool2d.default": _fractional(2),
    "aten.fractional_max_pool3d.default": _fractional(3),
    "aten._embedding_bag.default": _embedding_bag,
    "aten._embedding_bag_forward_only.default": _embedding_bag,
    "aten.binary_cross_entropy.default": _binary_cross_entropy,
    "aten.binary_cross_entropy_with_logits.default": _with_logits,
    "aten.cross_entropy_loss.default": _cross_entropy,
    "aten._ctc_loss.default": _connectionist,
    "aten._ctc_loss.Tensor": _connectionist,
    "aten.huber_loss.default": _simple(F.huber_loss, "delta"),
    "aten.kl_div.default": _simple(F.kl_div, "log_target"),
    "aten.l1_loss.default": _simple(F.l1_loss),
    "aten.mse_loss.default": _simple(F.mse_loss),
    "aten.multilabel_margin_loss_forward.default": _multilabel_margin,
    "aten.nll_loss_forward.default": _negative_log_likelihood,
    "aten.nll_loss2d_forward.default": _negative_log_likelihood,
    "aten.smooth_l1_loss.default": _simple(F.smooth_l1_loss, "beta"),
    "aten.soft_margin_loss.default": _simple(F.soft_margin_loss),
    "stretto.cross_entropy_loss.default": _cross_entropy,
    "stretto.nll_loss_nd.default": lambda *args: _negative_log_likelihood(*args)[0],
}

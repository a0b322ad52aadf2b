"""Products of matrices, convolutions, transforms and pooling; and the whole builder, ``Onnx``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of, real_dtype
from stretto._engine.lowering.onnx.graph import FINITE, Operand, Pair
from stretto._engine.lowering.onnx.indexing import Indexing

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_I32, _I64 = np.dtype(np.int32), np.dtype(np.int64)


_LONGEST = 2048
"""The most points of a transform that is a product with a matrix: of 32 MiB, one for each part."""


def _accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype that products of this one are added up in."""
    kind = kind_of(dtype)
    if kind == "float":
        return dtype if dtype == _F64 else _F32
    if kind == "complex":
        return dtype
    return dtype if dtype in (_I32, _I64) else _I64 if dtype.itemsize > 4 else _I32


def _product(sizes: Sequence[Any]) -> Any:
    """Multiply sizes, of which some may vary."""
    total: Any = 1
    for n in sizes:
        total = total * n
    return total


class Onnx(Indexing):
    """The writer of ONNX graphs."""

    def size_value(self, n: Any, out: ArrayType) -> Operand:
        """Return a size that varies, as a scalar."""
        name = self.node("Squeeze", [self.size(n)])
        return self.cast(Operand(name, array_type((), _I64), ()), out.dtype)

    def fourier(self, x: Any, kind: str, lengths: Sequence[int], out: ArrayType) -> Any:
        """Return the transform of the last axes, ``FFT IFFT RFFT IRFFT``, as ``DFT`` of each."""
        if real_dtype(x.type.dtype) == _F64:
            return self._fourier_by_products(x, kind, lengths, out)
        ndim = x.type.ndim
        axes = [ndim - len(lengths) + k for k in range(len(lengths))]
        if kind == "RFFT":
            name = self.named(self.whole(x))
            name = self.node("Unsqueeze", [name, self.ints([ndim])])
            name = self._dft(name, lengths[-1], axes[-1], onesided=1)
            axes = axes[:-1]
        else:
            name = self._pair_name(x)
        if kind == "IRFFT":
            for n, axis in zip(lengths[:-1], axes[:-1], strict=True):
                name = self._dft(name, n, axis, inverse=1)
            name = self._mirrored(name, lengths[-1], axes[-1], x.type.shape[-1])
            name = self._dft(name, lengths[-1], axes[-1], inverse=1)
            real = self.node("Gather", [name, self.constant(np.array(0, _I64))], axis=-1)
            return Operand(real, out, out.shape)
        inverse = {"inverse": 1} if kind == "IFFT" else {}
        for axis in axes:
            name = self._dft(name, lengths[axis - ndim], axis, **inverse)
        part = array_type(out.shape, real_dtype(out.dtype))
        halves = [
            self.node("Gather", [name, self.constant(np.array(k, _I64))], axis=-1) for k in (0, 1)
        ]
        return Pair(out, *[Operand(h, part, part.shape) for h in halves])

    def _fourier_by_products(
        self, x: Any, kind: str, lengths: Sequence[int], out: ArrayType
    ) -> Any:
        """Multiply by the matrix of roots of unity, whose float64 in ``DFT`` are only float32."""
        ndim = x.type.ndim
        axes = [ndim - len(lengths) + k for k in range(len(lengths))]
        if kind == "RFFT":
            x = self.convert(x, np.dtype(np.complex128))
        for axis in axes:
            n = lengths[axis - ndim]
            if n > _LONGEST:
                self.refuse(
                    f"a transform of {n} points in float64 would need a matrix of them: use "
                    f"float32, or up to {_LONGEST} points"
                )
            have = x.type.shape[axis]
            count = have
            if kind == "RFFT" and axis == axes[-1]:
                count = n // 2 + 1
            sign = 1 if kind in ("IFFT", "IRFFT") else -1
            scale = 1 / n if sign > 0 else 1.0
            if kind == "IRFFT" and axis == axes[-1]:
                count = n
                weight = np.where((np.arange(have) == 0) | (2 * np.arange(have) == n), 1.0, 2.0)
            else:
                weight = np.ones(have)
            steps = np.outer(np.arange(have), np.arange(count)) % n
            roots = np.exp(sign * 2j * np.pi * steps / n) * (scale * weight)[:, None]
            matrix = self.array(roots)
            shape = (*[m for d, m in enumerate(x.type.shape) if d != axis], count)
            product = self.dot(
                x, matrix, ((axis,), (0,)), ((), ()), array_type(shape, x.type.dtype)
            )
            back = [*range(axis), ndim - 1, *range(axis, ndim - 1)]
            x = self.transpose(product, back)
        return x.real if kind == "IRFFT" else x

    def constrain(self, x: Any, sharding: Any) -> Any:
        """Return the operand: a file knows no devices."""
        return x

    def _dft(self, name: str, n: int, axis: int, **attributes: int) -> str:
        length = self.constant(np.array(n, _I64))
        place = self.constant(np.array(axis, _I64))
        return self.node("DFT", [name, length, place], **attributes)

    def _pair_name(self, x: Pair) -> str:
        """Return the name of the parts along a last axis."""
        last = self.ints([x.type.ndim])
        parts = [
            self.node("Unsqueeze", [self.named(self.whole(v)), last]) for v in (x.real, x.imag)
        ]
        return self.node("Concat", parts, axis=-1)

    def _mirrored(self, name: str, n: int, axis: int, have: int) -> str:
        """Return all frequencies of a real signal, from those that are not conjugates of others."""
        last = have - 1 if n % 2 else have - 2
        if last < 1:
            return name
        cut = [name, self.ints([last]), self.ints([0]), self.ints([axis]), self.ints([-1])]
        flip = self.constant(np.array([1.0, -1.0], np.float64))
        rest = self.node("Slice", cut)
        kept = self.node("CastLike", [flip, rest])
        return self.node("Concat", [name, self.node("Mul", [rest, kept])], axis=axis)

    def dot(
        self,
        x: Any,
        y: Any,
        summed: tuple[Sequence[int], Sequence[int]],
        shared: tuple[Sequence[int], Sequence[int]],
        out: ArrayType,
    ) -> Any:
        """Return products, summed over pairs of axes and sharing others, as ``MatMul``."""
        if isinstance(x, Pair):
            return self._complex_product(
                x, y, out, lambda a, b, t: self.dot(a, b, summed, shared, t)
            )
        wide = _accumulator(out.dtype)
        x, y = self.convert(x, wide), self.convert(y, wide)
        free_x = [a for a in range(x.type.ndim) if a not in (*summed[0], *shared[0])]
        free_y = [a for a in range(y.type.ndim) if a not in (*summed[1], *shared[1])]
        batch = [x.type.shape[a] for a in shared[0]]
        rows, columns = [x.type.shape[a] for a in free_x], [y.type.shape[a] for a in free_y]
        depth = [x.type.shape[a] for a in summed[0]]
        made = array_type((*batch, *rows, *columns), wide)
        if not made.varies and (not made.size or 0 in depth):
            return self.convert(self.splat(0, made), out.dtype)
        if not depth:
            return self.convert(self._outer(x, y, free_x, free_y, shared, made), out.dtype)
        left = self.transpose(x, [*shared[0], *free_x, *summed[0]])
        right = self.transpose(y, [*shared[1], *summed[1], *free_y])
        # A matrix on the right multiplies any number of rows' axes.
        one = len(depth) == 1
        many = not batch and one and len(columns) == 1
        if not many:
            left = self._grouped(left, batch, [rows, depth])
            right = self._grouped(right, batch, [depth, columns])
        a, b = self._unrepeated(left, len(batch)), self._unrepeated(right, len(batch))
        name = self.node("MatMul", [self.named(a), self.named(b)])
        if many:
            return self.convert(Operand(name, made, made.shape), out.dtype)
        shape = (*batch, _product(rows), _product(columns))
        repeats = tuple(
            [1 if a.shape[k] == 1 and b.shape[k] == 1 else n for k, n in enumerate(batch)]
        )
        flat = Operand(name, array_type(shape, wide), (*repeats, *shape[len(batch) :]))
        return self.convert(self.reshape(flat, made), out.dtype)

    def _outer(
        self,
        x: Operand,
        y: Operand,
        free_x: Sequence[int],
        free_y: Sequence[int],
        shared: Any,
        made: ArrayType,
    ) -> Operand:
        count = len(shared[0])
        left = self.transpose(x, [*shared[0], *free_x])
        right = self.transpose(y, [*shared[1], *free_y])
        first = range(count + len(free_x))
        second = [*range(count), *range(count + len(free_x), made.ndim)]
        parts = [self.broadcast(left, first, made), self.broadcast(right, second, made)]
        return self.emit("multiply", *parts, out=made)

    def _grouped(
        self, x: Operand, batch: Sequence[Any], groups: Sequence[Sequence[Any]]
    ) -> Operand:
        """Return the operand with each group of axes as one."""
        shape = (*batch, *[_product(g) for g in groups])
        if x.type.shape == shape:
            return x
        return self.reshape(x, array_type(shape, x.type.dtype))

    def _unrepeated(self, x: Operand, batch: int) -> Operand:
        """Return the operand with whole matrices; along the batch it may repeat."""
        x = self.ranked(x)
        if x.shape[batch:] == x.type.shape[batch:]:
            return x
        kept = (*x.shape[:batch], *x.type.shape[batch:])
        smaller = x.seen_as(array_type(kept, x.type.dtype), x.shape)
        whole = self.whole(smaller)
        return whole.seen_as(x.type, kept)

    def _complex_product(self, x: Any, y: Any, out: ArrayType, product: Any) -> Any:
        """Return (a + ib)(c + id) by four real products."""
        part = array_type(out.shape, real_dtype(out.dtype))
        parts = [[product(u, v, part) for v in (y.real, y.imag)] for u in (x.real, x.imag)]
        (ac, ad), (bc, bd) = parts
        return Pair(
            out,
            self.emit("subtract", ac, bd, out=part),
            self.emit("add", ad, bc, out=part),
        )

    # Convolutions

    def convolution(self, op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
        """Return the convolution of ``lhs`` with a kernel, with the parameters of ``op``."""
        if isinstance(lhs, Pair):
            return self._complex_product(
                lhs, rhs, out, lambda a, b, t: self.convolution(op, a, b, t)
            )
        if not out.varies and (not out.size or not lhs.type.size or not rhs.type.size):
            return self.splat(0, out)
        x = self.transpose(lhs, op.dims.lhs_spec)
        kernel = self.transpose(rhs, op.dims.rhs_spec)
        wide = _accumulator(out.dtype)
        x, kernel = self.convert(x, wide), self.convert(kernel, wide)
        made = array_type(tuple([out.shape[d] for d in op.dims.out_spec]), wide)
        if op.batch_groups > 1:
            x = self._batch_as_features(x, op.batch_groups)
        groups = op.feature_groups * op.batch_groups
        if wide == _F32:
            turned = self._conv_transpose(x, kernel, op, groups, made)
            if turned is not None:
                back = [int(k) for k in np.argsort(op.dims.out_spec)]
                return self.convert(self.transpose(turned, back), out.dtype)
        x, padding = self._spread(x, op.padding, op.lhs_dilation)
        if not op.strides:
            result = self._pointwise(x, kernel, groups, made)
        elif wide in (_F32,):
            result = self._conv(x, kernel, op, padding, groups, made)
        else:
            result = self._by_taps(x, kernel, op, padding, groups, made)
        back = [int(k) for k in np.argsort(op.dims.out_spec)]
        return self.convert(self.transpose(result, back), out.dtype)

    def _batch_as_features(self, x: Operand, groups: int) -> Operand:
        """Move the groups of the batch to the features, whose groups are these then."""
        n, c, *rest = x.type.shape
        split = self.reshape(x, array_type((groups, n // groups, c, *rest), x.type.dtype))
        turned = self.transpose(split, [1, 0, *range(2, 3 + len(rest))])
        return self.reshape(turned, array_type((n // groups, groups * c, *rest), x.type.dtype))

    def _spread(self, x: Operand, padding: Any, dilation: Sequence[int]) -> tuple[Operand, Any]:
        """Put zeros between elements, and cut off what negative padding takes."""
        edges = [(min(low, 0), min(high, 0)) if not is_size(low) and not is_size(high) else (0, 0)
                 for low, high in padding]  # fmt: skip
        if not any(d > 1 for d in dilation) and not any(n for pair in edges for n in pair):
            return x, padding
        config = [(0, 0, 0), (0, 0, 0)]
        shape = [*x.type.shape[:2]]
        for d, n in zip(dilation, x.type.shape[2:], strict=True):
            config.append((0, 0, d - 1))
            shape.append((n - 1) * d + 1 if n else 0)
        zero = self.splat(0, array_type((), x.type.dtype))
        x = self.pad(x, zero, config, array_type(tuple(shape), x.type.dtype))
        parts = [(0, n, 1) for n in shape[:2]]
        for (low, high), n in zip(edges, shape[2:], strict=True):
            parts.append((-low, n + high, 1))
        left = [(low - a, high - b) for (low, high), (a, b) in zip(padding, edges, strict=True)]
        return self.slice(x, parts), left

    def _conv_transpose(
        self, x: Operand, kernel: Operand, op: Any, groups: int, made: ArrayType
    ) -> Operand | None:
        """Return ``ConvTranspose``, for zeros between elements; None where it cannot say it.

        Its kernel is turned, with input features first; it cuts off where a convolution pads:
        d (k - 1) - low at the beginning, and at the end as many, less what is added there.
        """
        if not 1 <= len(op.strides) <= 3 or all(d == 1 for d in op.lhs_dilation):
            return None
        if any(n != 1 for n in op.strides) or any(is_size(n) for pair in op.padding for n in pair):
            return None
        window = [int(n) for n in kernel.type.shape[2:]]
        reach = [d * (k - 1) for d, k in zip(op.rhs_dilation, window, strict=True)]
        low = [r - a for r, (a, _) in zip(reach, op.padding, strict=True)]
        high = [r - b for r, (_, b) in zip(reach, op.padding, strict=True)]
        more = [max(-n, 0) for n in high]
        if min(low) < 0 or any(
            m >= max(s, d) for m, s, d in zip(more, op.lhs_dilation, op.rhs_dilation, strict=True)
        ):
            return None
        features, inputs, *_ = kernel.type.shape
        split = (groups, features // groups, inputs, *window)
        kernel = self.reverse(self.whole(kernel), range(2, 2 + len(window)))
        kernel = self.reshape(kernel, array_type(split, kernel.type.dtype))
        kernel = self.transpose(kernel, [0, 2, 1, *range(3, 3 + len(window))])
        first = (groups * inputs, features // groups, *window)
        kernel = self.whole(self.reshape(kernel, array_type(first, kernel.type.dtype)))
        attributes: dict[str, Any] = {"kernel_shape": window, "strides": [*op.lhs_dilation]}
        if any(low) or any(n > 0 for n in high):
            attributes["pads"] = low + [max(n, 0) for n in high]
        if any(more):
            attributes["output_padding"] = more
        if any(d != 1 for d in op.rhs_dilation):
            attributes["dilations"] = [*op.rhs_dilation]
        if groups != 1:
            attributes["group"] = groups
        names = [self.named(self.whole(x)), self.named(kernel)]
        return Operand(self.node("ConvTranspose", names, **attributes), made, made.shape)

    def _conv(
        self, x: Operand, kernel: Operand, op: Any, padding: Any, groups: int, made: ArrayType
    ) -> Operand:
        if any(is_size(n) for pair in padding for n in pair):
            # Padding that depends on sizes goes before, as an operator of its own.
            config = [(0, 0, 0), (0, 0, 0), *[(low, high, 0) for low, high in padding]]
            shape = tuple(
                [n + low + high for n, (low, high, _) in zip(x.type.shape, config, strict=True)]
            )
            zero = self.splat(0, array_type((), x.type.dtype))
            x = self.pad(x, zero, config, array_type(shape, x.type.dtype))
            padding = [(0, 0)] * len(padding)
        attributes: dict[str, Any] = {"kernel_shape": [int(n) for n in kernel.type.shape[2:]]}
        if any(low or high for low, high in padding):
            attributes["pads"] = [low for low, _ in padding] + [high for _, high in padding]
        if any(s != 1 for s in op.strides):
            attributes["strides"] = [*op.strides]
        if any(d != 1 for d in op.rhs_dilation):
            attributes["dilations"] = [*op.rhs_dilation]
        if groups != 1:
            attributes["group"] = groups
        x, kernel = self.whole(x), self.whole(kernel)
        # onnxruntime takes one to three spatial axes of such a layout.
        if len(op.strides) > 3:
            return self._by_taps(x, kernel, op, padding, groups, made)
        name = self.node("Conv", [self.named(x), self.named(kernel)], **attributes)
        return Operand(name, made, made.shape)

    def _pointwise(self, x: Operand, kernel: Operand, groups: int, made: ArrayType) -> Operand:
        """Multiply features alone: there are no spatial axes."""
        n, c = x.type.shape
        o, k = kernel.type.shape
        if groups == 1:
            return self.dot(x, kernel, ((1,), (1,)), ((), ()), made)
        left = self.reshape(x, array_type((n, groups, c // groups), x.type.dtype))
        right = self.reshape(kernel, array_type((groups, o // groups, k), x.type.dtype))
        out = array_type((groups, n, o // groups), made.dtype)
        product = self.dot(left, right, ((2,), (2,)), ((1,), (0,)), out)
        return self.reshape(self.transpose(product, (1, 0, 2)), made)

    def _by_taps(
        self, x: Operand, kernel: Operand, op: Any, padding: Any, groups: int, made: ArrayType
    ) -> Operand:
        """Sum, over the places in the kernel, products of features: for dtypes without ``Conv``."""
        window = [int(n) for n in kernel.type.shape[2:]]
        if math.prod(window) > 256:
            self.refuse(
                f"a convolution of {made.dtype.name} with {math.prod(window)} places in its kernel "
                f"has no counterpart: use float32"
            )
        config = [(0, 0, 0), (0, 0, 0), *[(low, high, 0) for low, high in padding]]
        shape = tuple([n + a + b for n, (a, b, _) in zip(x.type.shape, config, strict=True)])
        zero = self.splat(0, array_type((), x.type.dtype))
        x = self.pad(x, zero, config, array_type(shape, x.type.dtype))
        n, c, *_ = x.type.shape
        o, k, *_ = kernel.type.shape
        spatial = made.shape[2:]
        total: Any = None
        for place in np.ndindex(*window):
            parts = [(0, n, 1), (0, c, 1)]
            for j, d, s, m in zip(place, op.rhs_dilation, op.strides, spatial, strict=True):
                parts.append((j * d, j * d + (m - 1) * s + 1, s))
            here = self.slice(x, parts)
            tap = self.slice(kernel, [(0, o, 1), (0, k, 1), *[(j, j + 1, 1) for j in place]])
            weights = self.reshape(tap, array_type((groups, o // groups, k), kernel.type.dtype))
            rows = self.reshape(here, array_type((n, groups, c // groups, *spatial), x.type.dtype))
            out = array_type((groups, o // groups, n, *spatial), made.dtype)
            product = self.dot(weights, rows, ((2,), (2,)), ((0,), (1,)), out)
            total = product if total is None else self.emit("add", total, product, out=out)
        order = [2, 0, 1, *range(3, 3 + len(spatial))]
        return self.reshape(self.transpose(total, order), made)

    # Windows

    def windows(self, op: str, x: Any, windows: Sequence[Any], start: Any, out: ArrayType) -> Any:
        """Combine the elements of windows, axis by axis; of images by ``MaxPool``."""
        if isinstance(x, Pair):
            if op == "add":
                part = array_type(out.shape, real_dtype(out.dtype))
                parts = [self.windows(op, v, windows, start, part) for v in (x.real, x.imag)]
                return Pair(out, *parts)
            return self._window_slices(op, x, windows, start, out)
        narrow = x.type.kind == "float" and x.type.dtype.itemsize < 4
        if narrow and op in ("add", "multiply"):
            wide = array_type(out.shape, _F32)
            return self.cast(self.windows(op, self.cast(x, _F32), windows, start, wide), out.dtype)
        images = x.type.dtype == _F32 and op in ("add", "maximum")
        plain = [w.size == 1 and w.stride == 1 and w.low == 0 and w.high == 0 for w in windows]
        if images and 3 <= len(windows) <= 5 and all(plain[:2]):
            spatial = windows[2:]
            fits = all(
                w.base_dilation == 1
                and not is_size(w.low)
                and not is_size(w.high)
                and 0 <= w.low < w.size
                and 0 <= w.high < w.size
                for w in spatial
            )
            if fits and (op == "add" or not self.exact):
                return self._pool(op, x, spatial, out)
            if fits:
                x = self.whole(x)
                return self._if_finite(
                    x,
                    out,
                    lambda: self._pool(op, x, spatial, out),
                    lambda: self._window_slices(op, x, windows, start, out),
                )
        return self._window_slices(op, x, windows, start, out)

    def _pool(self, op: str, x: Operand, spatial: Sequence[Any], out: ArrayType) -> Operand:
        """Return the maximum in windows of images, or their sum as the mean times the count."""
        attributes: dict[str, Any] = {"kernel_shape": [w.size for w in spatial]}
        if any(w.low or w.high for w in spatial):
            attributes["pads"] = [w.low for w in spatial] + [w.high for w in spatial]
        if any(w.stride != 1 for w in spatial):
            attributes["strides"] = [w.stride for w in spatial]
        if any(w.dilation != 1 for w in spatial):
            attributes["dilations"] = [w.dilation for w in spatial]
        name = self.named(self.whole(x))
        if op == "maximum":
            return Operand(self.node("MaxPool", [name], **attributes), out, out.shape)
        if "pads" in attributes:
            attributes["count_include_pad"] = 1
        mean = Operand(self.node("AveragePool", [name], **attributes), out, out.shape)
        count = math.prod([w.size for w in spatial])
        return self.apply("Mul", [mean, self.splat(count, out)], out)

    def _if_finite(self, x: Operand, out: ArrayType, fast: Any, exact: Any) -> Operand:
        """Choose, while it runs, what is fast and right where no element is NaN or infinite.

        The sum of all elements says so: it is finite for no others.
        """
        total = self.node("ReduceSum", [self.named(x)], keepdims=0)
        nothing = self.node("Sub", [total, total])
        zero = self.constant(np.zeros((), x.type.dtype))
        finite = self.node("Equal", [nothing, zero])
        graphs: dict[str, Any] = {
            "then_branch": self.inner(FINITE, (), lambda: [fast()]),
            "else_branch": self.inner("others", (), lambda: [exact()]),
        }
        return Operand(self.node("If", [finite], **graphs), out, out.shape)

    def _window_slices(
        self, op: str, x: Any, windows: Sequence[Any], start: Any, out: ArrayType
    ) -> Any:
        """Combine strided slices along one axis after another."""
        dtype = x.type.dtype
        fill = self.splat(start, array_type((), dtype))
        for axis, w in enumerate(windows):
            shape = [*x.type.shape]
            n = shape[axis]
            config = [(0, 0, 0)] * len(shape)
            config[axis] = (w.low, w.high, w.base_dilation - 1)
            padded = [*shape]
            padded[axis] = w.low + ((n - 1) * w.base_dilation + 1 if n != 0 else 0) + w.high
            x = self.pad(x, fill, config, array_type(tuple(padded), dtype))
            shape[axis] = out.shape[axis]
            made = array_type(tuple(shape), dtype)
            pieces = []
            for k in range(w.size):
                first = k * w.dilation
                parts = [(0, m, 1) for m in padded]
                parts[axis] = (first, first + (out.shape[axis] - 1) * w.stride + 1, w.stride)
                pieces.append(self.typed(self.slice(x, parts), made))
            while len(pieces) > 1:
                pairs = [
                    self.emit(op, a, b, out=made)
                    for a, b in zip(pieces[::2], pieces[1::2], strict=False)
                ]
                pieces = pairs + ([pieces[-1]] if len(pieces) % 2 else [])
            x = pieces[0]
        return self.typed(x, array_type(out.shape, dtype))

"""Members in one batch: how their inputs lie in an array, ``MultiHead``, and BatchEnsemble.

Tiled, an input is (members × batch, ...), one member's batch after the other, and ordinary layers
in between, such as batch normalization and pooling, take it as one batch; split, it is (members,
batch, ...).

Members of ``MultiHead`` share all but their last layers. Source: Lee et al., "Why M heads are
better than one: training a diverse ensemble of deep networks", 2015.

BatchEnsemble has one weight for all members, and two vectors of each member's own. Member i has the
weight W ∘ sᵢ rᵢᵀ, of rank-1 difference, and a product with it is (x ∘ rᵢ) Wᵀ ∘ sᵢ: one product for
all members. Source: Wen, Tran and Ba, "BatchEnsemble: an alternative approach to efficient ensemble
and lifelong learning", 2020. ``to_batch_ensemble`` makes one around the weights of a model that is
there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import reshape
from stretto.func import vmap
from stretto.nn import init
from stretto.nn.convolution import Conv2d
from stretto.nn.functional.checks import positive, refuse
from stretto.nn.linear import Linear
from stretto.nn.module import Module, Parameter, stateful_call
from stretto.nn.transformer import MultiheadAttention
from stretto.nn.updating import named_arrays
from stretto.random.discrete_draws import rademacher
from stretto.random.keys import as_key, fold_in, split
from stretto.random.streams import next_key
from stretto.tree import stack, unstack

__all__ = ["BatchEnsembleConv2d", "BatchEnsembleLinear", "MultiHead", "repeat_members",
           "split_members", "to_batch_ensemble"]  # fmt: skip


def repeat_members(x: ArrayLike, num_estimators: int) -> Array:
    """Tile a batch, so that each member gets the same.

    Args:
        x: (batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators × batch, ...).

    Raises:
        ValueError: ``x`` has no axis of a batch, or ``num_estimators`` is less than 1.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import repeat_members
    >>> repeat_members(snp.array([[1.0], [2.0]]), 2)[:, 0]
    Array([1., 2., 1., 2.], dtype=float32)
    """
    positive("repeat_members", num_estimators=num_estimators)
    values = as_value(x, "repeat_members")
    if not values.ndim:
        raise ValueError(f"repeat_members: x must have a batch axis, got {values.type}")
    return merged(broadcast_to(values, (num_estimators, *values.shape)))


def split_members(x: ArrayLike, num_estimators: int) -> Array:
    """Put the members along an axis of their own.

    Args:
        x: (num_estimators × batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators, batch, ...).

    Raises:
        ValueError: axis 0 does not hold equally many for each member.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import split_members
    >>> split_members(snp.arange(6.0), 2)
    Array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    positive("split_members", num_estimators=num_estimators)
    values = as_value(x, "split_members")
    if not values.ndim or values.shape[0] % num_estimators:
        raise ValueError(
            f"split_members: axis 0 must hold a batch for each of {num_estimators} members, got "
            f"{values.type}"
        )
    return reshape(values, (num_estimators, values.shape[0] // num_estimators, *values.shape[1:]))


def merged(x: Array) -> Array:
    """Split to tiled."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def by_member(layer: Module, x: ArrayLike, num_estimators: int, tiled: int) -> tuple[Array, bool]:
    """Return the input split, and whether it came tiled, which is to have ``tiled`` axes.

    Raises ``ValueError`` that names the layer.
    """
    values = as_value(x, type(layer).__name__, "input")
    if values.ndim == tiled and values.shape[0] % num_estimators == 0:
        return split_members(values, num_estimators), True
    if values.ndim <= tiled or values.shape[0] != num_estimators:
        refuse(
            layer,
            f"({num_estimators} members × batch, ...) of {tiled} axes, or ({num_estimators} "
            f"members, batch, ...) of more (repeat_members gives each member the same batch)",
            values,
        )
    return values, False


def spread(values: Array, ndim: int, place: int) -> Array:
    """Make (members, channels) an array of ``ndim`` axes, channels along ``place``."""
    shape = [values.shape[0], *[1] * (ndim - 1)]
    shape[place] = values.shape[1]
    return reshape(values, tuple(shape))


class MultiHead(Module):
    """One trunk, and a head for each member: heads of one make, run as one.

    ``heads`` holds their arrays stacked along axis 0. In train mode each head draws its own random
    numbers.

    Args:
        trunk: a module, run once.
        heads: modules of one structure, one for each member.

    Raises:
        TypeError: something is not a module.
        ValueError: a head differs from the first.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import MultiHead
    >>> trunk = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> model = MultiHead(trunk, [nn.Linear(16, 3) for _ in range(5)])
    >>> model(st.numpy.ones((4, 8))).shape
    (5, 4, 3)
    """

    trunk: Any
    heads: Any

    def __init__(self, trunk: Module, heads: Iterable[Module]) -> None:
        super().__init__()
        heads = list(heads)
        for module in (trunk, *heads):
            if not isinstance(module, Module):
                raise TypeError(f"MultiHead: expected modules, got {type(module).__name__}")
        if not heads:
            raise ValueError("MultiHead: expected at least one head, got none")
        self.num_estimators = len(heads)
        self.trunk = trunk
        self.heads = stack(heads)

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """Run the trunk, and all heads on what it gives.

        Args:
            *args: for the trunk.
            **kwargs: for the trunk.

        Returns:
            (members, batch, ...).
        """
        features = self.trunk(*args, **kwargs)
        out, updated = vmap(_run, in_dims=(0, None), randomness="different")(self.heads, features)
        here = named_arrays(self.heads)
        for name, value in updated.items():
            owner, attribute, _ = here[name]
            owner.update_buffer(attribute, value)
        return out

    def members(self) -> list[Any]:
        """Return the heads, one module each.

        Returns:
            The modules.
        """
        return unstack(self.heads)


def _run(head: Module, features: Tree) -> tuple[Any, dict[str, Any]]:
    """Return a head's output, and the buffers that it updated, by name."""
    out, after = stateful_call(head, features)
    old = named_arrays(head)
    return out, {n: new for n, (_, _, new) in named_arrays(after).items() if new is not old[n][2]}


class BatchEnsemble(Module):
    """A shared layer without bias, and of each member ``r``, ``s`` and ``bias``."""

    _tiled: ClassVar[int]  # axes of a tiled input
    _channels: ClassVar[int]  # where they lie in a split one

    shared: Any
    r: Any
    s: Any
    bias: Any

    def _begin(self, num_estimators: int, key: Key | None) -> Tree:
        super().__init__()
        caller = type(self).__name__
        positive(caller, num_estimators=num_estimators)
        self.num_estimators = num_estimators
        return split(next_key(caller) if key is None else as_key(key, caller), 4)

    def _set_up(
        self, shared: Module, bias: bool, factors: str, keys: Sequence[Key], dtype: DTypeLike | None
    ) -> None:
        """Make vectors and biases for the shared layer."""
        self.shared = shared
        n = self.num_estimators
        outputs, inputs = shared.weight.shape[0], shared.weight.shape[1]
        inputs *= getattr(shared, "groups", 1)
        dtype = shared.weight.dtype if dtype is None else dtype
        self.r = Parameter(_factors(type(self).__name__, factors, keys[1], (n, inputs), dtype))
        self.s = Parameter(_factors(type(self).__name__, factors, keys[2], (n, outputs), dtype))
        bound = 1 / math.sqrt(math.prod(shared.weight.shape[1:]))
        drawn = init.uniform(keys[3], (n, outputs), -bound, bound, dtype) if bias else None
        self.register_parameter("bias", drawn)

    def forward(self, input: ArrayLike) -> Array:
        """Return each member's output, laid out as the input is: tiled or split."""
        x, tiled = by_member(self, input, self.num_estimators, self._tiled)
        if x.shape[self._channels] != self.r.shape[1]:
            refuse(self, f"with {self.r.shape[1]} features or channels", x)
        product = self.shared(merged(x * spread(self.r, x.ndim, self._channels)))
        out = split_members(product, self.num_estimators)
        out = out * spread(self.s, x.ndim, self._channels)
        if self.bias is not None:
            out = out + spread(self.bias, x.ndim, self._channels)
        return merged(out) if tiled else out

    def extra_repr(self) -> str:
        """Return the number of members."""
        return f"num_estimators={self.num_estimators}, bias={self.bias is not None}"


def _factors(
    caller: str, factors: str, key: Key, shape: tuple[int, ...], dtype: DTypeLike | None
) -> Array:
    if factors == "signs":
        return rademacher(key, shape, dtype)
    if factors == "normal":
        return init.normal(key, shape, 1.0, 0.5, dtype)
    raise ValueError(f"{caller}: factors must be 'signs' or 'normal', got {factors!r}")


class BatchEnsembleLinear(BatchEnsemble):
    """``Linear`` layers of many members, whose weights differ by a product of two vectors.

    Parameters: ``shared.weight`` (out_features, in_features), begun as ``Linear``'s; for each
    member ``r`` (num_estimators, in_features), ``s`` and ``bias`` (num_estimators, out_features).
    The input is tiled, (num_estimators × batch, in_features), or split, (num_estimators, batch,
    ..., in_features), and so is the output.

    Args:
        in_features: of the input.
        out_features: of the output.
        num_estimators: how many members.
        bias: whether each member adds one.
        factors: how ``r`` and ``s`` begin: ``"signs"``, ±1 at random, or ``"normal"``, with mean 1
            and standard deviation 0.5, as in the paper.
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the parameters; the default float by default.

    Raises:
        ValueError: ``factors`` is neither; or, when called, the input does not match.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import BatchEnsembleLinear
    >>> layer = BatchEnsembleLinear(3, 2, num_estimators=4, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 5, 3))).shape, layer(st.numpy.ones((20, 3))).shape
    ((4, 5, 2), (20, 2))
    """

    _tiled = 2
    _channels = -1

    def __init__(
        self,
        in_features: int,
        out_features: int,
        num_estimators: int,
        bias: bool = True,
        *,
        factors: str = "signs",
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        keys = self._begin(num_estimators, key)
        shared = Linear(in_features, out_features, False, key=keys[0], dtype=dtype)
        self._set_up(shared, bias, factors, keys, dtype)


class BatchEnsembleConv2d(BatchEnsemble):
    """``Conv2d`` layers of many members, whose weights differ by a product of two vectors.

    Parameters: as for ``BatchEnsembleLinear``, with channels for features. The input is tiled,
    (num_estimators × batch, in_channels, height, width), or split, (num_estimators, batch,
    in_channels, height, width), and so is the output.

    Args:
        in_channels: of the input.
        out_channels: of the output.
        kernel_size: as for ``Conv2d``.
        num_estimators: how many members.
        stride: as for ``Conv2d``.
        padding: as for ``Conv2d``.
        dilation: as for ``Conv2d``.
        groups: as for ``Conv2d``.
        bias: whether each member adds one.
        padding_mode: as for ``Conv2d``.
        factors: as for ``BatchEnsembleLinear``.
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the parameters; the default float by default.

    Raises:
        ValueError: a setting is out of range; or, when called, the input does not match.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import BatchEnsembleConv2d
    >>> layer = BatchEnsembleConv2d(3, 8, 3, num_estimators=4, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 2, 3, 6, 6))).shape
    (4, 2, 8, 4, 4)
    """

    _tiled = 4
    _channels = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        num_estimators: int,
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        factors: str = "signs",
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        keys = self._begin(num_estimators, key)
        shared = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            False,
            padding_mode,
            key=keys[0],
            dtype=dtype,
        )
        self._set_up(shared, bias, factors, keys, dtype)


def around(layer: Module, num_estimators: int, factors: str, key: Key | None) -> BatchEnsemble:
    """Make a BatchEnsemble of a ``Linear`` or ``Conv2d`` that is there: its weight and bias."""
    kind = BatchEnsembleLinear if isinstance(layer, Linear) else BatchEnsembleConv2d
    layers = object.__new__(kind)
    keys = layers._begin(num_estimators, key)
    shared = layer.clone()
    shared.bias = None
    layers._set_up(shared, False, factors, keys, None)
    if layer.bias is not None:
        layers.bias = Parameter(
            init.zeros((num_estimators, 1), dtype=layer.bias.dtype) + layer.bias
        )
    return layers.train(layer.training)


def to_batch_ensemble(
    model: Module, num_estimators: int, *, factors: str = "signs", key: Key | None = None
) -> Module:
    """Copy a model, with each ``Linear`` and ``Conv2d`` made a BatchEnsemble of it.

    Weights are shared; each member begins with the layer's bias and with factors of its own. The
    copy takes tiled inputs (``repeat_members``), and ``split_members`` separates its outputs.
    What ``MultiheadAttention`` holds, and classes derived from ``Linear`` and ``Conv2d``, stay.

    Args:
        model: a module.
        num_estimators: how many members.
        factors: how the factors begin, as for ``BatchEnsembleLinear``.
        key: a key; ``None`` draws from the ambient stream.

    Returns:
        The new module.

    Raises:
        TypeError: ``model`` is not a module.
        ValueError: it has no layer to replace.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import repeat_members, split_members, to_batch_ensemble
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> ensemble = to_batch_ensemble(model, 4, factors="normal", key=st.random.PRNGKey(0))
    >>> split_members(ensemble(repeat_members(st.numpy.ones((5, 8)), 4)), 4).shape
    (4, 5, 3)
    """
    if not isinstance(model, Module):
        raise TypeError(f"to_batch_ensemble: expected a module, got {type(model).__name__}")
    base = next_key("to_batch_ensemble") if key is None else as_key(key, "to_batch_ensemble")
    copies: dict[int, Module] = {}
    replaced: list[Module] = []

    def converted(module: Module) -> Module:
        if id(module) not in copies:
            copies[id(module)] = module
            if type(module) in (Linear, Conv2d):
                layer_key = fold_in(base, len(replaced))
                copies[id(module)] = around(module, num_estimators, factors, layer_key)
                replaced.append(module)
            elif not isinstance(module, (MultiheadAttention, BatchEnsemble)):
                for name, child in module.named_children():
                    setattr(module, name, converted(child))
        return copies[id(module)]

    out = converted(model.clone())
    if not replaced:
        raise ValueError(
            f"to_batch_ensemble: {type(model).__name__} has no Linear or Conv2d layer to replace"
        )
    return out

"""Arrays that are put on devices of the user's choice, split or whole, and programs on them.

An ``Array`` is wherever the runtime has it; a ``Sharded`` one has a sharding, and what is computed
from it stays on its devices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from stretto._engine.core.caches import room
from stretto._engine.core.mesh import UNCONSTRAINED, PartitionSpec
from stretto._engine.core.primitive import meshes
from stretto._engine.core.program import Program, Var
from stretto._engine.core.shardings import (
    Index,
    NamedSharding,
    Placement,
    Sharding,
    SingleDeviceSharding,
)
from stretto._engine.core.threads import Turn, once
from stretto._engine.core.types import ArrayType
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.lowering.text import Text
from stretto._engine.ops.sharding_constraint import ShardingConstraint
from stretto._engine.passes.prepare import for_platform, prepare
from stretto._engine.xla import pjrt, processes
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.cache import Recent
from stretto._engine.xla.device import default_device
from stretto._engine.xla.options import Options
from stretto._engine.xla.partitions import (
    PlacedExecutable,
    compile_placed,
    parts_of,
    put,
    put_together,
)


class Shard(NamedTuple):
    """The part of an array that one device has.

    Args:
        device: the device.
        index: which part of the whole it is, a slice for each axis.
        replica_id: the number of this copy among those of the same part, counted from 0.
        data: the part, an array on that device.
    """

    device: Any
    index: Index
    replica_id: int
    data: Array


class Sharded(Array):
    """An array with a sharding: split over devices, repeated on them, or on one of choice."""

    __slots__ = ("_sharding",)

    _sharding: Sharding

    def parts(self) -> list[np.ndarray]:
        """Return the parts on devices of this process, in their order, as NumPy arrays.

        Raises ``DonatedArrayError`` if the array was donated to a jitted call, or deleted.
        """
        if len(self._sharding.device_list) == 1 and self._sharding.is_fully_addressable:
            return [pjrt.to_host(self.to_give())]  # once it is computed
        self.block_until_ready()
        return [pjrt.to_host(part) for part in parts_of(self.to_give())]

    def block_until_ready(self) -> Sharded:
        """Wait until it is computed; errors of the computation are raised here.

        Returns:
            The array itself.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
            LostProcessError: another process, whose part it needs, has ended or does not answer.
        """
        buffer = self.to_give()
        if self._sharding.is_fully_addressable:
            pjrt.wait(buffer)
        else:
            processes.finish(buffer)
        return self

    def to_host(self) -> np.ndarray:
        """Give the NumPy face, put together if need be: not to be written, nor handed to users.

        Returns:
            The NumPy array.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
            RuntimeError: parts of it are on devices of other processes alone.
        """
        host = self._host
        if host is None:
            host = self._host = self._together()
        return host

    def _together(self) -> np.ndarray:
        parts, sharding, shape = self.parts(), self._sharding, self.type.shape
        if sharding.is_fully_replicated:
            return parts[0]
        if not sharding.is_fully_addressable:
            raise RuntimeError(
                f"this {self.type} is split over devices of several processes, {sharding}, and "
                f"this process has only a part: read that, x.addressable_shards, or have all "
                f"processes call distributed.process_allgather(x)"
            )
        host = np.empty(shape, self.type.dtype)
        for part, index in zip(parts, sharding.indices(shape), strict=True):
            host[index] = part
        host.flags.writeable = False
        return host

    def to_buffer(self) -> Any:
        """Give a buffer of all elements on the default device.

        Returns:
            The buffer, a copy.

        Raises:
            DonatedArrayError: the array was donated to a jitted call, or deleted.
            RuntimeError: parts of it are on devices of other processes alone.
        """
        return pjrt.to_device(self.to_host(), self.type, own=False)

    def __repr__(self) -> str:
        if self.is_deleted() or self._can_be_together():
            return super().__repr__()
        return f"Array({self.type}, {self._sharding})"

    def __str__(self) -> str:
        return super().__str__() if self._can_be_together() else repr(self)

    def _can_be_together(self) -> bool:
        """Say whether all elements are in this process."""
        return self._sharding.is_fully_addressable or self._sharding.is_fully_replicated

    def __copy__(self) -> Array:
        self.to_give()
        return reshard(self, self._sharding)


SHARDED.append(Sharded)


def _is_sharded(x: Any) -> TypeGuard[Sharded]:
    """Say whether it has a sharding; ``isinstance`` holds for any value."""
    return x.__class__ is Sharded


def of_parts(type: ArrayType, buffer: Any, sharding: Sharding) -> Sharded:
    """Return the array of this buffer, whose parts are on the devices of the sharding."""
    array = Sharded(None, type, buffer)
    array._sharding = sharding
    return array


def of_arrays(parts: Sequence[Array], type: ArrayType, sharding: Sharding) -> Sharded:
    """Return the array of copies of these parts, one for each device of this process, in order."""
    # Those of one process have another client than what is over several: see ``clients``.
    if sharding.is_fully_addressable and all([_is_sharded(part) for part in parts]):
        buffer = put_together([part.to_give() for part in parts], type, sharding)
    else:
        buffer = put([part.to_host() for part in parts], type, sharding)
    return of_parts(type, buffer, sharding)


def sharding_of(x: Array) -> Sharding:
    """Return the sharding of a concrete array."""
    return sharding_if_any(x) or SingleDeviceSharding(default_device())


def shards_of(x: Any) -> list[Shard]:
    """Return the parts of an array with a sharding on devices of this process, in order."""
    sharding, found = x._sharding, []
    type = x.type.with_shape(sharding.shard_shape(x.type.shape))
    seen: dict[Any, int] = {}
    # What is on devices of this process alone is of another client: see ``clients``.
    copied = not sharding.is_fully_addressable
    local: Iterator[Any] = iter(x.parts() if copied else parts_of(x.to_give()))
    for device, index in zip(sharding.device_list, sharding.indices(x.type.shape), strict=True):
        key = tuple([(part.start, part.stop) for part in index])
        copy = seen[key] = seen.get(key, -1) + 1
        if device.is_local:
            part, there = next(local), SingleDeviceSharding(device)
            buffer = put([part], type, there) if copied else part
            found.append(Shard(device, index, copy, of_parts(type, buffer, there)))
    return found


def place(x: Array, sharding: Sharding) -> Sharded:
    """Return the array with this sharding, whose shape was checked; itself if it has it already.

    On the same devices the runtime moves the parts; other devices get them by way of the host.
    """
    sharding = _the_one(sharding)
    if _is_sharded(x):
        return x if x._sharding == sharding else reshard(x, sharding)
    return _from_host(x.to_host(), x.type, sharding)


_known: dict[Any, Sharding] = {}


def _the_one(sharding: Sharding) -> Sharding:
    """Return the first of equal shardings, so that calls with them are found by its address."""
    if isinstance(sharding, NamedSharding):
        key = sharding.mesh, sharding.spec
        return _known.get(key) or room(_known).setdefault(key, sharding)
    return sharding


def reshard(x: Sharded, sharding: Sharding) -> Sharded:
    """Return a copy of the array with this sharding."""
    if x._sharding.device_list == sharding.device_list and len(sharding.device_list) > 1:
        move = _identity(x.type, Placement(sharding.device_list, None, (x._sharding,), (sharding,)))
        return of_parts(x.type, move([x.to_give()])[0], sharding)
    return _from_host(x.to_host(), x.type, sharding)


def _from_host(host: np.ndarray, type: ArrayType, sharding: Sharding) -> Sharded:
    indices = zip(sharding.device_list, sharding.indices(type.shape), strict=True)
    parts = [host[index] for device, index in indices if device.is_local]
    return of_parts(type, put(parts, type, sharding), sharding)


# Programs on such arrays


_by_text: Recent[PlacedExecutable] = Recent()
_compiling: dict[Any, Turn] = {}


def compile_cached(
    text: Text, out_types: Sequence[ArrayType], placement: Placement, options: Options
) -> PlacedExecutable:
    """Return the compiled form of this text, which says where its inputs are; compiled once.

    Raises ``NotImplementedError`` if it calls Python, unless it is for one GPU.
    """
    if text.calls:
        if [device.platform for device in placement.devices] != ["gpu"]:
            raise NotImplementedError(
                "a program on devices of choice cannot call Python, unless it is on one GPU alone: "
                "no callbacks in it, nor debug.print"
            )
        return compile_placed(text, out_types, placement, options)  # equal texts call others
    key = text, placement, options
    return once(
        _by_text, _compiling, key, lambda: compile_placed(text, out_types, placement, options)
    )


def clear() -> None:
    """Forget what was compiled."""
    _by_text.clear()
    _identity.cache_clear()


def sharding_if_any(x: Any) -> Sharding | None:
    """Return the sharding of a value, if it has one of its own."""
    return x._sharding if _is_sharded(x) else None


@functools.lru_cache(4096)
def _identity(type: ArrayType, placement: Placement) -> PlacedExecutable:
    x = Var(type)
    text = lower(Program([x], [], [x], "reshard"), placement=placement)
    return compile_placed(text, (type,), placement)


def run_placed(program: Program, args: Sequence[Array]) -> list[Array]:
    """Run a program on arrays of which some are ``Sharded``; its results are where XLA has them.

    Raises ``ValueError`` if they are on different devices.
    """
    there = _constrain_alone(program, args)
    if there is not None:
        return [there]
    ins = tuple([sharding_if_any(x) for x in args])
    runners = program.cache.setdefault("placed", {})
    by_address = tuple(map(id, ins))
    known = runners.get(by_address)
    if known is None:
        names = [f"operand {i}" for i in range(len(args))]
        placement = placement_of(program, ins, (None,) * len(program.outputs), names)
        assert placement is not None
        executable = runners.get(placement)
        if executable is None:
            text = lower(for_platform(prepare(program), placement), placement=placement)
            executable = compile_cached(text, program.out_types, placement, ())
            runners[placement] = executable
        room(runners)
        # The shardings are kept, so that no others get their addresses.
        known = runners[by_address] = runner(executable, ins), ins
    return known[0](args)


def _constrain_alone(program: Program, args: Sequence[Array]) -> Sharded | None:
    """Return the result of a constraint alone, where it can be had without a program."""
    if len(program.equations) != 1 or len(args) != 1:
        return None
    (equation,), (x,) = program.equations, args
    constraint = equation.primitive
    if not isinstance(constraint, ShardingConstraint):
        return None
    if list(program.outputs) != list(equation.outputs):
        return None
    sharding = constraint.sharding
    if _is_sharded(x):
        return x if x._sharding == sharding else None
    return None if UNCONSTRAINED in tuple(sharding.spec) else place(x, sharding)


def run_on(executable: PlacedExecutable, args: Sequence[Array]) -> list[Array]:
    """Return the results of a compiled program for these arrays, put where it takes them."""
    arrays = all_placed(args, executable.placement)
    return results_of(executable, executable([x.to_give() for x in arrays]))


def runner(
    executable: PlacedExecutable, there: Sequence[Sharding | None]
) -> Callable[[Sequence[Array]], list[Array]]:
    """Return ``run_on`` for arrays of these shardings, each the very object; None for none."""
    ins = executable.placement.ins
    if any([has != wanted for has, wanted in zip(there, ins, strict=True)]):
        return functools.partial(run_on, executable)

    def run(args: Sequence[Array]) -> list[Array]:
        return results_of(executable, executable([x.to_give() for x in args]))

    return run


def all_placed(args: Sequence[Array], placement: Placement) -> list[Array]:
    """Return the arrays, put where a program takes them."""
    return [place(x, sharding) for x, sharding in zip(args, placement.ins, strict=True)]


def results_of(executable: PlacedExecutable, buffers: Sequence[Any]) -> list[Array]:
    """Return the results of a compiled program as arrays."""
    parts = zip(executable.out_types, buffers, executable.outs, strict=True)
    return [of_parts(type, buffer, sharding) for type, buffer, sharding in parts]


def placement_of(
    program: Program,
    ins: Sequence[Sharding | None],
    outs: Sequence[Sharding | None],
    names: Sequence[str],
) -> Placement | None:
    """Return where a program runs whose inputs and outputs have these shardings.

    It is None if none has any.

    An input without one is repeated on all devices. ``names`` are what messages call the inputs.
    Raises ``ValueError`` if shardings are on different devices.
    """
    about = [(s, name) for s, name in zip(ins, names, strict=True) if s is not None]
    about += [(s, "a result") for s in outs if s is not None]
    about += [
        (NamedSharding(mesh, PartitionSpec()), "a constraint") for mesh in meshes(program.effects)
    ]
    if not about:
        return None
    first, name = about[0]
    for sharding, other in about:
        if sharding.device_list != first.device_list:
            raise ValueError(
                f"{program.name}: all must be on the same devices, in the same order; {name} is on "
                f"{_sharding_in_words(first)}, and {other} on {_sharding_in_words(sharding)}: put "
                f"them on the same ones, stretto.device_put(x, sharding)"
            )
    named = next((s for s, _ in about if isinstance(s, NamedSharding)), None)
    mesh = None if named is None else named.mesh
    everywhere = first if mesh is None else NamedSharding(mesh, PartitionSpec())
    where = tuple([everywhere if s is None else s for s in ins])
    return Placement(first.device_list, mesh, where, tuple(outs))


def _sharding_in_words(sharding: Sharding) -> str:
    devices = ", ".join(map(str, sharding.device_list[:8]))
    return f"{sharding} ({devices}{', …' if sharding.num_devices > 8 else ''})"

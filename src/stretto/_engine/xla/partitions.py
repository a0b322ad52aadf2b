"""Programs and arrays over several devices, as the runtime has them.

Shardings become the runtime's, arrays are put on devices part by part, and text with shardings is
compiled for a list of devices.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import LostProcessError
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding, Placement, Sharding, SingleDeviceSharding
from stretto._engine.core.threads import lock
from stretto._engine.core.types import ArrayType
from stretto._engine.lowering.text import Text
from stretto._engine.xla import disk, pjrt, processes
from stretto._engine.xla.callbacks import Functions, to_the_end
from stretto._engine.xla.clients import Job, job_of_now, runtime_of
from stretto._engine.xla.instructions import has_collectives
from stretto._engine.xla.options import Options
from stretto._engine.xla.patience import elsewhere, unusual
from stretto._engine.xla.pjrt import Executable


def _tiles(sharding: Sharding, ndim: int) -> str:
    """Return a sharding as XLA writes it."""
    if sharding.is_fully_replicated:
        return "{replicated}"
    counts, numbers = sharding.tiling(ndim)
    order = sorted(range(len(numbers)), key=lambda k: numbers[k])
    copies = len(numbers) // int(np.prod(counts))
    dims = [*counts, copies] if copies > 1 else [*counts]
    last = " last_tile_dim_replicate" if copies > 1 else ""
    return f"{{devices=[{','.join(map(str, dims))}]{','.join(map(str, order))}{last}}}"


@functools.lru_cache(4096)
def _xla_sharding(sharding: Sharding, ndim: int) -> Any:
    """Return the runtime's form of a sharding of arrays with so many axes."""
    at = runtime_of(sharding.device_list)
    devices = [at.device_of(device) for device in sharding.device_list]
    return at.sharding_on(devices, _tiles(sharding, ndim))


def put(parts: Sequence[np.ndarray], type: ArrayType, sharding: Sharding) -> Any:
    """Return a buffer of copies of these parts, one for each device of this process, in order."""
    at = runtime_of(sharding.device_list)
    local = [at.device_of(device) for device in sharding.device_list if device.is_local]
    # Copied here, and kept by the runtime as they are: it cannot copy one array to several devices.
    arrays = [np.array(part, order="C", copy=True) for part in parts]
    where = _xla_sharding(sharding, type.ndim)
    return at.put(pjrt.aval(type), where, arrays, local, True, enable_x64=True)


def put_together(buffers: Sequence[Any], type: ArrayType, sharding: Sharding) -> Any:
    """Return a buffer of copies of these, each on its device of this process, in order."""
    at = runtime_of(sharding.device_list)
    local = [at.device_of(device) for device in sharding.device_list if device.is_local]
    where = _xla_sharding(sharding, type.ndim)
    return at.put(pjrt.aval(type), where, [*buffers], local, True, force_copy=True, enable_x64=True)


_parting = lock()


def parts_of(buffer: Any) -> list[Any]:
    """Return the buffers of the parts on devices of this process, in the order of the devices."""
    # The runtime makes the list when it is first asked, and without the lock adds the parts once
    # for each thread that asks meanwhile, for good.
    with _parting:
        return _arrays_of(buffer)


_arrays_of = pjrt.without_jax(lambda buffer: buffer._arrays)


_launching = lock()
_last: list[tuple[Job | None, Callable[[], None]]] = []
"""A function that waits for the last program with collectives, or of several processes."""


class PlacedExecutable(Executable):
    """A program compiled for several devices; called with the buffers of its inputs."""

    __slots__ = (
        "_alone",
        "_communicates",
        "_job",
        "_options",
        "_same_lines",
        "_shared",
        "out_types",
        "outs",
        "placement",
    )

    def __init__(
        self,
        loaded: Any,
        out_types: Sequence[ArrayType],
        placement: Placement,
        text: Text,
        options: Options,
        same_lines: bool = True,
    ) -> None:
        super().__init__(loaded, (), text)
        self.out_types, self.placement = out_types, placement
        on_cpu = [d for d in placement.devices if d.platform == "cpu" and d.is_local]
        self.run = pjrt.runner(loaded, out_types, text, len(on_cpu))
        self._options, self._same_lines = options, same_lines
        self.outs = _out_shardings(loaded, out_types, placement)
        at = runtime_of(placement.devices)
        self.handlers = [
            at.jax.array_result_handler(
                pjrt.aval(t), _xla_sharding(s, t.ndim), True, *at.skip_checks
            )
            for t, s in zip(out_types, self.outs, strict=True)
        ]
        # Up to 0.11.0, a program with collectives that is launched while another one runs may wait
        # for threads that the other one has: for ever.
        self._communicates = has_collectives(self)
        self._alone = bool(at.skip_checks) and self._communicates
        self._job = job_of_now()
        self._shared = not all([device.is_local for device in placement.devices])

    def as_text(self) -> str:
        """Return the optimized HLO, with the lines of this program."""
        if self._same_lines:
            return super().as_text()
        at = runtime_of(self.placement.devices)
        devices = [at.device_of(device) for device in self.placement.devices]
        again = pjrt.load(at, self.text, self._options, devices=devices)
        return Executable(again, (), self.text).as_text()

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on these buffers, which must have the shardings compiled for.

        Raises ``LostProcessError`` if one of the processes that it runs in is gone, and
        ``RuntimeError`` if their job has ended.
        """
        pjrt.tidy()
        if job_of_now() is not self._job:
            runtime_of(self.placement.devices)  # says that it has ended
        return elsewhere(self._run, buffers) if unusual else self._run(buffers)

    def _run(self, buffers: Sequence[Any]) -> list[Any]:
        if self._shared:
            if self._communicates:
                processes.check()
            with _launching:
                return self._after_the_last(buffers)
        if not self._alone:
            return self.run(buffers).consume_with_handlers(self.handlers)
        with _launching:
            _wait_for_the_last()
            results = self.loaded.execute_sharded(buffers, with_tokens=True)
            _last.append((None, results.consume_token().block_until_ready))
        return results.consume_with_handlers(self.handlers)

    def _after_the_last(self, buffers: Sequence[Any]) -> list[Any]:
        """Run in several processes; any program is waited for, as it may take the last's memory."""
        if self._alone:
            _wait_for_the_last()

        def start() -> list[Any]:
            return self.loaded.execute_sharded(buffers).consume_with_handlers(self.handlers)

        results = processes.launch(start) if self._communicates else start()
        if results:  # all of them are there at once, so the smallest is as good as any
            sizes = [type.size for type in self.out_types]
            smallest = results[sizes.index(min(sizes))]
            wait = functools.partial(processes.finish, smallest)
            _last[:] = [(self.placement.devices[0].job, wait)]
        return results


class CallingPlaced(PlacedExecutable):
    """One that calls Python functions, whose exceptions its call raises."""

    __slots__ = ("_functions",)

    def __init__(self, functions: Functions, *about: Any) -> None:
        super().__init__(*about)
        self._functions = functions

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on these buffers, until all functions have returned."""
        self._functions.deepen()
        return to_the_end(lambda: pjrt.run_to_the_end(self, buffers))


def _wait_for_the_last() -> None:
    """Wait until the last program has ended, well or not: its results have its errors."""
    while _last:
        job, wait = _last.pop()
        if job not in (None, job_of_now()):
            continue
        try:
            wait()
        except RuntimeError as error:
            if isinstance(error, LostProcessError) or not pjrt.is_failure(error):
                raise


def compile_placed(
    text: Text, out_types: Sequence[ArrayType], placement: Placement, options: Options = ()
) -> PlacedExecutable:
    """Compile text, which says the shardings of its inputs, for the devices of the placement.

    Programs on devices of this process alone are kept on disk, and loaded from there, unless they
    call Python.
    """
    at = runtime_of(placement.devices)
    devices = [at.device_of(device) for device in placement.devices]
    if text.calls:
        functions = Functions(text.calls, 1)
        loaded = pjrt.load(at, text, options, functions.listed(), devices)
        return CallingPlaced(functions, loaded, out_types, placement, text, options)
    local = all([device.is_local for device in placement.devices])
    entry = disk.entry_of(text, options, devices, at) if local else None
    found = entry and entry.found()
    if found:
        loaded, same_lines = found
        result = PlacedExecutable(loaded, out_types, placement, text, options, same_lines)
        result.from_disk = True
        return result
    loaded = pjrt.load(at, text, options, devices=devices)
    result = PlacedExecutable(loaded, out_types, placement, text, options)
    if entry:
        entry.keep(result)
    return result


# What the compiler chose


def _out_shardings(
    loaded: Any, out_types: Sequence[ArrayType], placement: Placement
) -> list[Sharding]:
    mesh = placement.mesh
    if not out_types:
        return []  # the runtime says where its empty tuple is
    if mesh is None or len(placement.devices) == 1:
        alone = SingleDeviceSharding(placement.devices[0])
        whole = alone if mesh is None else NamedSharding(mesh, PartitionSpec())
        return [whole if s is None else s for s in placement.outs]
    chosen = loaded.get_output_shardings() or [None] * len(out_types)
    return [
        _named_sharding(c, mesh, t.ndim) if s is None else s
        for s, c, t in zip(placement.outs, chosen, out_types, strict=True)
    ]


def _named_sharding(tiles: Any, mesh: Mesh, ndim: int) -> NamedSharding:
    """Return the sharding over the mesh that the runtime describes.

    Where an array is split over part of an axis of the mesh, it is over that axis in factors.
    """
    counts, numbers = _read_parts(tiles, mesh.size, ndim)
    for candidate in (mesh, _factor_axes(mesh)):
        for parts in _specs(counts, dict(candidate.shape)):
            sharding = NamedSharding(candidate, PartitionSpec(*parts))
            if sharding.tiling(ndim) == (counts, numbers):
                return sharding
    raise AssertionError(f"no specification over {mesh} is {tiles}")


def _read_parts(tiles: Any, size: int, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number of parts along each axis, and which of the parts each device has."""
    dims = list(tiles.tile_assignment_dimensions)
    if not dims:  # replicated
        return (1,) * ndim, (0,) * size
    if tiles.tile_assignment_devices:
        order = np.array(tiles.tile_assignment_devices)
    else:
        shape, turn = list(tiles.iota_reshape_dims), list(tiles.iota_transpose_perm)
        order = np.arange(size).reshape(shape).transpose(turn).ravel()
    counts = tuple(dims[:ndim])
    copies = size // int(np.prod(counts))
    numbers = np.empty(size, int)
    numbers[order] = np.arange(size) // copies
    return counts, tuple(numbers.tolist())


def _specs(counts: Sequence[int], sizes: dict[Any, int]) -> Iterator[tuple[Any, ...]]:
    """Yield all ways to split axes into so many parts over a mesh's axes of these sizes."""
    if not counts:
        yield ()
        return
    names = [name for name, size in sizes.items() if size > 1]
    for length in range(len(names) + 1):
        for chosen in itertools.permutations(names, length):
            if int(np.prod([sizes[name] for name in chosen])) == counts[0]:
                rest = {name: size for name, size in sizes.items() if name not in chosen}
                for others in _specs(counts[1:], rest):
                    yield (chosen or None, *others)


def _factor_axes(mesh: Mesh) -> Mesh:
    """Return the same devices, with each axis split into one for each of its prime factors."""
    names: list[Any] = []
    sizes: list[int] = []
    for name, size in mesh.shape.items():
        factors = list(_primes(size))
        if len(factors) > 1:
            names += [f"{name}.{k}" for k in range(len(factors))]
            sizes += factors
        else:
            names.append(name)
            sizes.append(size)
    return Mesh(mesh.devices.reshape(sizes), tuple(names))


def _primes(n: int) -> Iterator[int]:
    factor = 2
    while n > 1:
        while n % factor == 0:
            yield factor
            n //= factor
        factor += 1

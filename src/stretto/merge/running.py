"""Carrying out a plan: block by block into files beside the place, renamed when all are complete.

The result is made in a folder beside its place, ``.NAME.merging/result``, with a journal in
``.NAME.merging``. A line of the journal says how far a file is on the disk, and the CRC-32 of that
much. A run that was killed goes on from the last line, if plan and files are the same; what was
written after it is written again. When all is there and on the disk, one rename puts it in its
place.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from stretto._engine.core import machine, system
from stretto._engine.core.config import enable_x64
from stretto._engine.core.files import checked_path
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array
from stretto.files import file_parts
from stretto.files.file_elements import true_type
from stretto.merge.matrices import Matrices
from stretto.merge.measuring import Measuring, Pieces
from stretto.merge.methods import Method
from stretto.merge.planning import Plan, Shard, Step, plan, room_for
from stretto.merge.recipes import raise_all, seed_problem
from stretto.merge.streams import Stream

__all__ = ["Report", "run"]

json = LazyModule("json")

_BETWEEN = 1 << 26
"""Bytes that are written between two lines of the journal."""
_SMALL = 1 << 18  # bytes
_KEPT = (1 << 25) - (1 << 16)  # bytes: glibc's bound is at most 32 MiB
_JOURNAL = "journal.jsonl"
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


class Report(NamedTuple):
    """What ``run`` did."""

    path: str
    """Where the result is, through all links."""
    files: Mapping[str, str]
    """The CRC-32 of each file of tensors, as 8 hexadecimal digits, by its name."""
    tensors: int
    """How many tensors it has."""
    nbytes: int
    """How many bytes these take."""
    resumed: int
    """Bytes that were there from a run before."""


def run(
    recipe: Any,
    out: str | os.PathLike[str],
    *,
    memory: int | str = "256MB",
    shard_size: int | str | None = None,
    resume: bool = True,
    seed: int | None = None,
    nonfinite: str = "error",
    verify: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Merge models, file to file.

    Tensors are read, computed and written block by block, so that models larger than memory are
    merged in little of it. The result does not depend on ``memory``. Nothing is at ``out`` until it
    is whole; a run that was stopped goes on where it was when it is called again.

    Args:
        recipe: as ``plan`` takes it.
        out: a file that ends in ``.safetensors``, or a folder, which is made; as the base, or else
            the first model, is.
        memory: about how much to take for tensors, in bytes, or as text with MB, MiB, GB or GiB;
            methods that need whole matrices take what ``plan`` says, if that is not far more.
        shard_size: the most bytes of a file; by default all tensors are in one.
        resume: whether to go on where a run of the same recipe and files was stopped; otherwise
            what it left is removed.
        seed: for methods that draw; by default the recipe's.
        nonfinite: "error" to refuse NaN and infinity in the result, "keep" to let them be.
        verify: whether to read the result again, and compare checksums, before it is put in place.
        progress: called with bytes that are done, and all, now and then.

    Returns:
        A ``Report``.

    Raises:
        ValueError: something is wrong with the recipe or the files, as ``plan`` says; with ``out``;
            or there are NaN or infinities in a tensor, with their number.
        TypeError: the recipe, or ``out``, is no path.
        OSError: a file cannot be read or written, such as when the disk is full; what is done is
            kept for the next run.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> folder = tempfile.mkdtemp()
    >>> paths = [os.path.join(folder, f"{name}.safetensors") for name in "ab"]
    >>> for i, path in enumerate(paths):
    ...     st.save(path, {"w": snp.full(4, 2 * i, "float32")})
    >>> out = os.path.join(folder, "mean.safetensors")
    >>> st.merge.run({"method": "linear", "models": paths}, out).tensors
    1
    >>> st.load(out)
    {'w': Array([1., 1., 1., 1.], dtype=float32)}
    """
    if nonfinite not in ("error", "keep"):
        raise ValueError(f'run: nonfinite must be "error" or "keep", got {nonfinite!r}')
    if seed is not None and (problem := seed_problem(seed)):
        raise ValueError(f"run: {problem}")
    most = in_bytes(memory, "memory")
    ready = plan(
        recipe, shard_size=None if shard_size is None else in_bytes(shard_size, "shard_size")
    )
    with contextlib.closing(ready):
        if seed is not None:
            ready = ready._replace(seed=seed)
        place = os.path.realpath(checked_path(out, "run"))
        check_place(place, ready)
        _check_memory(ready, most)
        _check_integers(ready, most)
        _keep_what_is_freed()
        with contextlib.closing(_Stage(place, ready, resume)) as stage, enable_x64():
            return _Running(ready, stage, most, nonfinite, progress).run(verify)


def _keep_what_is_freed() -> None:
    """Have glibc's malloc use the memory of one block's result for the next.

    By default it gives 128 KiB and more back to the system, which fills each page with zeros when
    it is asked again: 1.4 of 8 seconds. Once an array is freed it keeps what is not larger
    (mallopt(3), M_MMAP_THRESHOLD). Other allocators have no such bound.
    """
    np.empty(_KEPT, np.uint8)  # freed at once; its pages are never touched


def in_bytes(text: int | str, name: str) -> int:
    """Return a number of bytes that was given as one, or as text with a unit.

    >>> in_bytes("1.5 GB", "memory")
    1500000000
    """
    if isinstance(text, str):
        for unit, size in _UNITS.items():
            number = text.strip().upper().removesuffix(unit).strip()
            if text.strip().upper().endswith(unit) and number.replace(".", "", 1).isdecimal():
                return int(float(number) * size)
        number = text.strip()
        if number.isdecimal():
            return int(number)
    elif isinstance(text, (int, float)) and not isinstance(text, bool) and 1 <= text < 1e30:
        return int(text)
    raise ValueError(f'run: {name} must be bytes, as 500_000_000 or "500MB", got {text!r}')


def check_place(place: str, ready: Plan) -> None:
    """Raise ``ValueError`` unless the result can be put there, a path without links."""
    problem = None
    folders = {c.path: os.path.realpath(c.folder) for c in ready.checkpoints if c.is_folder}
    inside = [p for p, folder in folders.items() if os.path.commonpath([place, folder]) == folder]
    same = [c.path for c in ready.checkpoints if os.path.realpath(c.path) == place]
    if inside or same:
        problem = f"it is {'inside ' if inside else ''}the input {(inside or same)[0]}"
    elif ready.is_folder and os.path.isdir(place) and os.listdir(place):
        problem = f"the folder has {len(os.listdir(place))} entries, and must be empty or absent"
    elif ready.is_folder and os.path.exists(place) and not os.path.isdir(place):
        problem = "the result is a folder, and this is a file"
    elif not ready.is_folder and os.path.isdir(place):
        problem = "the result is one file, and this is a folder: name a file"
    elif not ready.is_folder and os.path.exists(place):
        problem = "there is a file already: remove it, or name another"
    elif not os.path.isdir(os.path.dirname(place)):
        problem = f"there is no folder {os.path.dirname(place)}"
    else:
        problem = room_for(place, ready.nbytes - _size(_stage_of(place)))
    if problem:
        raise ValueError(f"run: the result cannot be at {place}: {problem}")


def _check_memory(ready: Plan, most: int) -> None:
    """Raise ``ValueError`` where whole matrices take far more than was given."""
    largest = max(ready.steps, key=lambda step: step.memory, default=None)
    if largest is None or largest.memory <= 4 * most:
        return
    how = ready.recipe.how
    raise ValueError(
        f"run: {how.name} needs whole matrices, and for {largest.name} of shape "
        f"{list(largest.shape)} about {largest.memory:,} bytes, with memory={most:,}: give more, "
        + (
            f"or leave it out of the files of {how.beside.key}" if how.beside
            else "or leave it out by the setting decompose"
        )
    )  # fmt: skip


def _stays_in_memory(ready: Plan) -> bool:
    """Say whether the system can be left to keep the result's pages beside those of the inputs.

    Of more than a quarter of the memory, those of a few tries would take the place of the inputs',
    which the next try reads, and of others' files.
    """
    total = machine.memory().total
    read = sum(s.nbytes for c in ready.checkpoints for s in c.stored.values())
    return total is None or read + ready.nbytes <= total // 4


def _check_integers(ready: Plan, most: int) -> None:
    """Raise ``ValueError`` for all tensors of which each model has other integers."""
    problems = []
    for step in ready.steps:
        if step.copied and step.models[1:]:
            try:
                for _ in equal_blocks(step, most):
                    pass
            except ValueError as error:
                problems.append(str(error).removeprefix("merge: "))
    raise_all(problems, "what is in the files", "run")


def _stage_of(place: str) -> str:
    """Return the folder in which a result is made."""
    head, tail = os.path.split(place)
    return os.path.join(head, f".{tail}.merging")


def _size(folder: str) -> int:
    """Return how many bytes the files of a folder have, if it is there."""
    return sum(
        os.path.getsize(os.path.join(top, name))
        for top, _, names in os.walk(folder)
        for name in names
    )


class _Stage:
    """The folder in which the result is made, and its journal, which this process locks."""

    def __init__(self, place: str, ready: Plan, resume: bool) -> None:
        self.place, self.ready = place, ready
        self.folder = _stage_of(place)
        self.result = os.path.join(self.folder, "result")
        """What becomes the result, or the folder of the file that does."""
        self.done: dict[str, tuple[int, int]] = {}
        """How far each file is on the disk, with the CRC-32 of that much."""
        self.stays_in_memory = _stays_in_memory(ready)
        journal = os.path.join(self.folder, _JOURNAL)
        try:
            os.makedirs(self.folder, exist_ok=True)
            if os.path.islink(self.folder) or set(os.listdir(self.folder)) - {_JOURNAL, "result"}:
                raise ValueError(
                    f"run: the result is made in {self.folder}, which is something else already: "
                    f"remove it"
                )
            self._journal = open(  # noqa: SIM115 (closed below)
                journal, "a+", encoding="utf-8", opener=system.open_no_link
            )
        except OSError as error:
            raise OSError(
                error.errno,
                f"run: the result is made in {self.folder}, where nothing can be written: "
                f"{error.strerror or error}",
            ) from None
        try:
            if not system.take_over(self._journal):
                raise ValueError(f"run: another process is merging to {place}: wait for it")
            if not _is_at(self._journal.fileno(), journal):
                raise ValueError(f"run: another process has just merged to {place}")
            check_place(place, ready)  # again, as another may have been ready before the lock
            digest = ready.digest()
            if not (resume and self._read(digest)):
                self._clear()
                self.note({"plan": digest})
            os.makedirs(self.result, exist_ok=True)
        except BaseException:
            self._journal.close()
            raise

    def _read(self, digest: str) -> bool:
        """Read the journal of a run before; false if there is none, or of another plan."""
        self._journal.seek(0)
        lines = self._journal.read().split("\n")[:-1]  # a kill may have cut the last one
        try:
            said = [json.loads(line) for line in lines]
            if said[0] != {"plan": digest}:
                return False
            self.done = {each["file"]: (each["bytes"], each["crc32"]) for each in said[1:]}
        except (ValueError, KeyError, TypeError, IndexError):
            return False
        self._journal.truncate(sum(len(line.encode()) + 1 for line in lines))
        return True

    def _clear(self) -> None:
        """Remove what a run before has left."""
        self.done = {}
        self._journal.truncate(0)
        if os.path.islink(self.result):
            os.unlink(self.result)
        elif os.path.isdir(self.result):
            shutil.rmtree(self.result)

    def note(self, said: Mapping[str, Any]) -> None:
        """Add a line to the journal, and bring it to the disk."""
        self._journal.write(json.dumps(said) + "\n")
        self._journal.flush()
        system.flush(self._journal.fileno())

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def commit(self) -> None:
        """Put the result in its place."""
        for top, _, _ in os.walk(self.result):
            system.flush_folder(top)
        if self.ready.is_folder:
            if os.path.isdir(self.place):
                os.rmdir(self.place)
            os.rename(self.result, self.place)
        else:
            if os.path.lexists(self.place):
                raise FileExistsError(errno.EEXIST, f"there is a file at {self.place} by now")
            os.rename(os.path.join(self.result, self.ready.shards[0].path), self.place)
        system.flush_folder(os.path.dirname(self.place))
        if system.KEEPS_OPEN_FILES:
            self._journal.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_at(descriptor: int, path: str) -> bool:
    """Say whether an open file is still what a path leads to."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def checksum_of(file: BinaryIO, most: float = math.inf) -> tuple[int, int]:
    """Read a file to its end, or so many bytes; return how many there are, and their CRC-32."""
    # A damaged disk is what it is for, and not a forger, who could write the journal too: it takes
    # a third of the time of SHA-256, and a tenth where the processor has no instructions for that.
    size = checksum = 0
    while size < most:
        piece = file.read(min(most - size, 1 << 20))  # type: ignore[arg-type]
        if not piece:
            break
        checksum = zlib.crc32(piece, checksum)
        size += len(piece)
    return size, checksum


class _Out:
    """A file that is being written, by another thread, with what is known to be on the disk."""

    def __init__(self, stage: _Stage, shard: Shard, beginning: bytes) -> None:
        self.stage, self.name = stage, shard.path
        path = os.path.join(stage.result, shard.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.file: BinaryIO = open(path, "a+b")  # noqa: SIM115 (closed below)
        self.checksum = 0
        self.position = self._kept()
        self.noted = self.position
        self._pool = ThreadPoolExecutor(1, "stretto-write")
        self._pending: list[Future[None]] = []
        self._small = bytearray()
        if self.position < len(beginning):
            self.file.truncate(0)
            self.position = self.noted = self.checksum = 0
            self.put(beginning)

    def _kept(self) -> int:
        """Return how much a run before has brought to the disk, and cut off the rest."""
        size, noted = self.stage.done.get(self.name, (0, 0))
        self.file.seek(0)
        there, self.checksum = checksum_of(self.file, size)
        if (there, self.checksum) != (size, noted):
            size = self.checksum = 0
        self.file.truncate(size)
        self.file.seek(0, os.SEEK_END)
        return size

    def put(self, data: bytes | memoryview) -> None:
        """Write, after what was given before; raises what a write before has raised."""
        self.position += len(data)
        if len(data) < _SMALL:  # many in one go, as a thread is given each
            self._small += data
            if len(self._small) > _SMALL:
                self._hand_over()
            return
        self._hand_over()
        self._submit(data)

    def _hand_over(self) -> None:
        """Have the small pieces written."""
        if self._small:
            data, self._small = self._small, bytearray()
            self._submit(data)

    def _submit(self, data: bytes | bytearray | memoryview) -> None:
        while len(self._pending) > 1:
            self._pending.pop(0).result()
        self._pending.append(self._pool.submit(self._write, data))

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        self.file.write(data)
        self.checksum = zlib.crc32(data, self.checksum)

    def settle(self, *, always: bool = False) -> None:
        """Note how far the file is, between two tensors, if that is worth it."""
        if not always and self.position - self.noted < _BETWEEN:
            return
        self._wait()
        if self.position > self.noted:
            self.file.flush()
            system.flush(self.file.fileno())
            if not self.stage.stays_in_memory:
                system.forget(self.file.fileno())
            self.stage.note({"file": self.name, "bytes": self.position, "crc32": self.checksum})
            self.noted = self.position

    def _wait(self) -> None:
        self._hand_over()
        while self._pending:
            self._pending.pop(0).result()

    def close(self) -> None:
        """Close the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        with contextlib.suppress(OSError):  # such as a full disk: the next run cuts it off
            self.file.close()


class _Running:
    """Carries out a plan."""

    def __init__(
        self, ready: Plan, stage: _Stage, most: int, nonfinite: str,
        progress: Callable[[int, int], object] | None,
    ) -> None:  # fmt: skip
        self.plan, self.stage, self.most = ready, stage, most
        self.nonfinite, self.progress = nonfinite, progress
        self.done = 0
        self.resumed = 0

    def run(self, verify: bool) -> Report:
        kept = f"what is done is kept in {self.stage.folder}"
        goes_on = f"{kept}, and the same call goes on with it"
        try:
            return self.whole(verify)
        except KeyboardInterrupt as error:
            error.add_note(f"run: {goes_on}")
            raise
        except OSError as error:
            words = (error.strerror or str(error)).removeprefix("run: ")
            raise OSError(error.errno, f"run: {words}; {goes_on}") from None
        except ValueError as error:
            raise ValueError(f"{error}; {kept}") from None

    def whole(self, verify: bool) -> Report:
        """Write all files, and put them in their place."""
        before = [c.identity() for c in self.plan.checkpoints]
        checksums = {shard.path: self.write(shard) for shard in self.plan.shards}
        for checkpoint, identity in zip(self.plan.checkpoints, before, strict=True):
            if checkpoint.identity() != identity:
                raise ValueError(f"run: {checkpoint.path} was changed while it was merged")
        for source, name in self.plan.copied_files:
            with self.beside(name) as file, open(source, "rb") as given:
                shutil.copyfileobj(given, file)
        for name, text in self.plan.written_files:
            with self.beside(name) as file:
                file.write(text)
        if verify:
            for name, checksum in checksums.items():
                with open(os.path.join(self.stage.result, name), "rb") as file:
                    _, found = checksum_of(file)
                if found != checksum:
                    raise OSError(f"{name} was written, and is another file on the disk")
        self.stage.commit()
        said = {name: f"{checksum:08x}" for name, checksum in checksums.items()}
        return Report(self.stage.place, said, len(self.plan.steps), self.plan.nbytes, self.resumed)

    @contextlib.contextmanager
    def beside(self, name: str) -> Iterator[BinaryIO]:
        """Open a file that is no tensor's to write, and bring it to the disk in the end."""
        path = os.path.join(self.stage.result, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            yield file
            file.flush()
            system.flush(file.fileno())

    def write(self, shard: Shard) -> int:
        """Write a file, or what is missing of it, and return its checksum."""
        steps = sorted(
            shard.steps, key=lambda s: (-true_type(s.name, s.code, (), None).dtype.itemsize, s.name)
        )
        prefix = os.path.dirname(shard.path) + "/" if os.path.dirname(shard.path) else ""
        entries: Any = {step.name.removeprefix(prefix): _Typed(step) for step in steps}
        beginning = file_parts.header(entries, dict(self.plan.metadata))
        out = _Out(self.stage, shard, beginning)
        try:
            start = max(out.noted - len(beginning), 0) if out.noted else 0
            self.resumed += out.noted
            end = 0
            for step in steps:
                end += step.nbytes
                if end <= start and out.noted:
                    self.done += step.nbytes
                    continue
                self.merge(step, out)
                out.settle()
            out.settle(always=True)
            return out.checksum
        finally:
            out.close()

    def merge(self, step: Step, out: _Out) -> None:
        """Compute a tensor, block by block."""
        blocks = (
            equal_blocks(step, self.most)
            if step.copied
            else merged_blocks(self.plan, step, self.most, self.nonfinite)
        )
        for data in blocks:
            out.put(data)
            self.done += len(data)
            if self.progress is not None:
                self.progress(self.done, self.plan.nbytes)


def equal_blocks(step: Step, most: int) -> Iterator[bytes]:
    """Give the bytes of a tensor that all models must have alike.

    Raises ``ValueError`` where one has others.
    """
    for block in Stream(step.models, most // 4):
        first = block.arrays[0][: block.size]
        for source, array in zip(step.models[1:], block.arrays[1:], strict=True):
            if not np.array_equal(first, array[: block.size]):
                raise ValueError(
                    f"merge: {step.name} has integers, which are copied, and {source} has others "
                    f'than {step.models[0]}: make them alike, or take the first by integers="first"'
                )
        yield first.tobytes()


def merged_blocks(
    ready: Plan, step: Step, most: int, nonfinite: str = "error"
) -> Iterator[memoryview]:
    """Give the bytes of a tensor, block by block, as they are computed.

    Raises ``ValueError`` at the end where there are NaN or infinities.
    """
    how: Method = ready.recipe.how
    dtype = true_type(step.name, step.code, (), None).dtype
    if step.whole:
        yield _merged_matrix(how, step, dtype, nonfinite)
        return
    everyone = [*step.models, *([step.base] if step.base else [])]
    wide = any(s.stored.code == "F64" for s in everyone) or ready.dtype == "F64"
    m = Measuring(
        step.models, step.base, step.settings,
        rows=how.rows(step.settings), most=most // 2,
        dtype=np.dtype(np.float64 if wide else np.float32),
        seed=ready.seed, name=step.name, beside=step.beside,
    )  # fmt: skip
    measured = None if how.measure is None or not m.size else how.measure(m)
    strange = 0
    for block, result in m.run(_rounded(how.combine, dtype), measured):
        own = result.reshape(-1)[: block.size]
        strange += strange_in(own)
        yield memoryview(own.view(np.uint8))  # type: ignore[arg-type]
    _check_finite(step, strange, m.size, nonfinite)


def _merged_matrix(how: Method, step: Step, dtype: np.dtype, nonfinite: str) -> memoryview:
    """Give the bytes of a tensor that is computed as a whole."""
    matrix: Any = how.matrix
    m = Matrices(step.models, step.base, step.beside, step.settings, step.name)
    with np.errstate(over="ignore"):  # of the rounding, which is counted below
        result = np.ascontiguousarray(matrix(m).astype(dtype))
    _check_finite(step, strange_in(result), result.size, nonfinite)
    return memoryview(result.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _check_finite(step: Step, strange: int, size: int, nonfinite: str) -> None:
    if strange and nonfinite == "error":
        raise ValueError(
            f"merge: {strange} of {size} elements of {step.name} are NaN or infinite in "
            f'{step.code}: look at the models, or let them be with nonfinite="keep"'
        )


class _Typed:
    """A tensor to come, as a header needs it."""

    def __init__(self, step: Step) -> None:
        self.dtype = true_type(step.name, step.code, (), None).dtype
        self.shape, self.nbytes = step.shape, step.nbytes


def strange_in(numbers: np.ndarray) -> int:
    """Return how many of a vector of floats are NaN or infinite.

    >>> strange_in(np.float32([1, -np.inf, np.nan]))
    2
    """
    # Their bits are the largest of one sign, as numbers without sign and with it. Two reductions
    # take 0.1 ns an element, and the same in the compiled program 0.4.
    signed, unsigned = (numbers.view(f"{kind}{numbers.itemsize}") for kind in "iu")
    positive, negative = np.array([np.inf, -np.inf], numbers.dtype).view(unsigned.dtype)
    if not numbers.size or (signed.max() < positive and unsigned.max() < negative):
        return 0
    return int(np.count_nonzero(unsigned << 1 >= positive << 1))


_ROUNDED: dict[Any, Callable[[Pieces], Array]] = {}


def _rounded(combine: Callable[[Pieces], Array], dtype: np.dtype) -> Callable[[Pieces], Array]:
    """Return what gives a block of the result in a dtype: one function for each, compiled once."""
    key = combine, dtype
    if key not in _ROUNDED:
        _ROUNDED[key] = lambda p: combine(p).astype(dtype)
    return _ROUNDED[key]

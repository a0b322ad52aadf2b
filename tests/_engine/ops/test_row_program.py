"""Programs over rows as instructions of the kernel."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.api.graph import make_graph
from stretto._engine.core.types import array_type
from stretto._engine.ops import row_program
from stretto._engine.ops.row_program import Read, Space, View, Views, instructions

F32 = np.dtype(np.float32)


def program(f, *shapes):
    return make_graph(f)(*[np.zeros(shape, np.float32) for shape in shapes])


def views(graph):
    return Views({v: e for e in graph.equations for v in e.outputs})


@pytest.mark.parametrize(
    ("f", "strides"),
    [
        (lambda x: snp.broadcast_to(x, (5, 3, 4)), (0, 4, 1)),
        (lambda x: snp.broadcast_to(x[:, None, :], (3, 5, 4)), (4, 0, 1)),
        (lambda x: x.reshape(3, 1, 4, 1), (4, 0, 1, 0)),
        (lambda x: x.reshape(6, 2), (2, 1)),
        (lambda x: snp.broadcast_to(x, (5, 3, 4)).reshape(5, 1, 3, 4, 1), (0, 0, 4, 1, 0)),
    ],
)
def test_repeats_and_reshapes_are_read_where_they_lie(f, strides):
    graph = program(f, (3, 4))
    find, (out,) = views(graph), graph.outputs
    base, view = find(out)
    assert base is graph.inputs[0]
    steps = [s for n, s in zip(*view, strict=True) if n != 1]
    assert steps == [s for n, s in zip(out.type.shape, strides, strict=True) if n != 1]
    assert view.shape == out.type.shape
    assert find.is_view(out)


def test_what_is_reshaped_after_it_was_repeated_is_an_array_of_its_own():
    graph = program(lambda x: snp.broadcast_to(x, (5, 3, 4)).reshape(15, 4), (3, 4))
    find = views(graph)
    assert not find.is_view(graph.outputs[0])


def decoded(numbers):
    """The numbers of the head by name, and the operations' names."""
    names = ["columns", "stretches", "behind", "step", *[f"place {k}" for k in range(4)]]
    names += ["inputs", "outputs", "sums", "chunks", "kept", "scalars", "sections"]
    head = dict(zip([*names, "literals", "lines"], numbers[5:22], strict=True))
    lines = np.array(numbers[len(numbers) - 10 * head["lines"] :]).reshape(-1, 10)
    by_code = {code: name for name, code in row_program.CODES.items()}
    return head, [by_code[code] for code in lines[:, 0]]


def test_a_softmax_is_a_few_instructions_in_three_phases():
    def softmax(x):
        e = snp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    numbers, inputs, _ = instructions(program(softmax, (6, 80)), Space((6, 80), 1, F32))
    assert inputs == (0,)
    assert numbers[:5] == (0, 1, 1, 1, 6)  # not of 64 bits; rows along the last of four axes
    head, operations = decoded(numbers)
    assert (head["columns"], head["inputs"], head["outputs"], head["sums"]) == (80, 1, 1, 0)
    assert (head["step"], head["place 3"]) == (80, 80)
    assert operations.count("exp_difference") == 1  # of two operations
    assert [op for op in operations if op not in ("load", "copy")] == [
        "greatest",
        "exp_difference",
        "sum",
        "div",
    ]


def test_a_buffer_is_used_again():
    def chain(x):
        for n in range(20):
            x = snp.abs(x + n)
        return x.sum(-1)

    head, _ = decoded(instructions(program(chain, (6, 80)), Space((6, 80), 1, F32)).numbers)
    assert head["chunks"] == 2  # one has the input, which may be the array itself


def test_what_is_read_in_two_ways_is_two_arrays():
    def total(b, x):
        return (x + b[:, None] + b[None, :]).sum(-1)

    told = instructions(program(total, (80,), (80, 80)), Space((80, 80), 1, F32))
    assert sorted(told.inputs) == [0, 0, 1]
    assert decoded(told.numbers)[0]["inputs"] == 3


@pytest.mark.parametrize("count", [96, 97])
def test_as_many_arrays_as_the_kernel_has_room_for(count):
    def total(*arrays):
        s = arrays[0]
        for a in arrays[1:]:
            s = s + a
        return s.sum(-1)

    graph = program(total, *[(6, 80)] * count)
    assert (instructions(graph, Space((6, 80), 1, F32)) is None) == (count == 97)


def test_spaces_have_rows_and_columns():
    space = Space((2, 3, 4, 5), 2, F32)
    assert (space.lead, space.columns) == ((2, 3), 20)
    assert array_type(space.shape, space.dtype).size == 120


OWN, REPEATED, TURNED, OF_ROWS, OF_COLUMNS, ONE = (
    View((2, 3, 4, 5), (60, 20, 5, 1)),
    View((2, 3, 4, 5), (0, 20, 5, 1)),
    View((2, 3, 4, 5), (60, 20, 1, 4)),
    View((2, 3, 1, 1), (3, 1, 1, 1)),
    View((2, 3, 4, 5), (0, 0, 5, 1)),
    View((), ()),
)


@pytest.mark.parametrize(
    ("view", "kind", "found"),
    [
        (OWN, "rows", Read("rows", (60, 20), 0)),
        (OWN, "scalars", None),
        (REPEATED, "rows", Read("rows", (0, 20), 0)),
        (TURNED, "rows", None),
        (OF_ROWS, "rows", Read("scalars", (3, 1), 0)),
        (OF_ROWS, "scalars", Read("scalars", (3, 1), 0)),
        (OF_COLUMNS, "rows", Read("rows", (0, 0), 0)),
        (ONE, "rows", Read("scalars", (0, 0), 0)),
    ],
)
def test_how_an_array_is_read_row_by_row(view, kind, found):
    assert Space((2, 3, 4, 5), 2, F32).reads(view, kind) == found


@pytest.mark.parametrize(
    ("view", "kind", "found"),
    [
        (OWN, "rows", Read("rows", (60, 1), 20)),
        (OWN, "scalars", None),
        (REPEATED, "rows", Read("rows", (0, 1), 20)),
        (TURNED, "rows", None),
        (View((2, 3, 4, 5), (0, 7, 0, 0)), "rows", Read("columns", (0, 0), 7)),
        (View((2, 3, 4, 5), (60, 20, 5, 0)), "rows", None),
        (View((2, 1, 4, 5), (20, 0, 5, 1)), "rows", Read("scalars", (20, 1), 0)),
        (View((2, 4, 5), (20, 5, 1)), "scalars", Read("scalars", (20, 1), 0)),
        (View((2, 4, 5), (20, 0, 1)), "scalars", None),
    ],
)
def test_how_an_array_is_read_where_pixels_lie_behind_channels(view, kind, found):
    assert Space((2, 3, 4, 5), 1, F32, 2).reads(view, kind) == found


@pytest.mark.parametrize(
    ("view", "kind", "found"),
    [
        (OWN, "rows", Read("rows", (60,), 20)),
        (View((2, 3, 4, 5), (0, 1, 0, 0)), "rows", Read("parts", (0,), 1)),
        (View((2, 3, 1, 1), (0, 1, 0, 0)), "parts", Read("parts", (0,), 1)),
        (View((2, 3, 1, 1), (0, 1, 0, 0)), "scalars", None),
        (View((2, 3, 4, 5), (0, 0, 1, 0)), "rows", None),
        (View((2, 3, 4, 5), (1, 0, 0, 0)), "parts", Read("scalars", (1,), 0)),
    ],
)
def test_how_an_array_is_read_where_values_repeat_in_stretches(view, kind, found):
    assert Space((2, 3, 4, 5), 3, F32, 0, 1).reads(view, kind) == found


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((2, 3, 4, 5), "rows"),
        ((2, 3), "parts"),
        ((2, 3, 1, 1), "parts"),
        ((2,), "scalars"),
        ((2, 1, 1), "scalars"),
        ((2, 1, 1, 1), "scalars"),
        ((2, 3, 4), None),
        ((3,), None),
    ],
)
def test_what_an_array_of_a_shape_is_where_rows_are_stretches(shape, kind):
    assert Space((2, 3, 4, 5), 3, F32, 0, 1).kind(shape) == kind


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((2, 3, 4, 5), "rows"), ((2, 4, 5), "scalars"), ((2, 1, 4, 5), "scalars"), ((2, 3), None)],
)
def test_what_an_array_of_a_shape_is_where_pixels_lie_behind(shape, kind):
    space = Space((2, 3, 4, 5), 1, F32, 2)
    assert space.kind(shape) == kind
    assert (space.lead, space.columns, space.axes) == ((2, 20), 3, (1,))


@pytest.mark.parametrize(
    ("view", "kind", "own", "is_own"),
    [
        (OWN, "rows", "rows", True),
        (OWN, "scalars", "rows", False),
        (REPEATED, "rows", "rows", False),
        (TURNED, "rows", "rows", False),
        (OF_ROWS, "rows", "scalars", True),
        (OF_ROWS, "scalars", "scalars", True),
        (OF_ROWS, "rows", "rows", False),
        (OF_COLUMNS, "rows", "scalars", False),
        (ONE, "rows", "scalars", False),
    ],
)
def test_values_of_the_program_are_read_in_the_row_that_they_are_of(view, kind, own, is_own):
    assert Space((2, 3, 4, 5), 2, F32).is_own(view, kind, own) is is_own


OVER = Space((6, 3, 5, 4, 2), 2, F32, over=(1, 2))
"""For each of 6 members and 5 channels a row: 3 examples of 4 by 2 places."""


def test_rows_over_examples():
    assert (OVER.axes, OVER.lead, OVER.columns, OVER.parts) == ((1, 3, 4), (6, 5), 24, 3)
    assert OVER.whole == ("rows", (120, 8), 40)
    shapes = [(6, 3, 5, 4, 2), (6, 5), (6, 1, 5, 1, 1), (5, 1, 1), (6, 3, 5, 1, 1), (6, 5, 1, 1)]
    assert [OVER.kind(s) for s in shapes] == ["rows", "scalars", "scalars", None, None, None]
    few = Space((3, 5, 4, 2), 2, F32, over=(0, 1))
    assert [few.kind(s) for s in [(5,), (5, 1, 1), (1, 5, 1, 1), (3, 1, 1, 1)]] == [
        "scalars", "scalars", "scalars", None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("strides", "kind", "found"),
    [
        ((120, 40, 8, 2, 1), "rows", ("rows", (120, 8), 40)),
        ((120, 40, 8, 2, 1), "scalars", None),
        ((120, 0, 8, 2, 1), "rows", ("rows", (120, 8), 0)),  # the same for all examples
        ((15, 5, 1, 0, 0), "rows", ("parts", (15, 1), 5)),  # one of each example and channel
        ((15, 5, 1, 0, 0), "scalars", None),
        ((5, 0, 1, 0, 0), "rows", ("scalars", (5, 1), 0)),
        ((5, 0, 1, 0, 0), "scalars", ("scalars", (5, 1), 0)),
        ((120, 40, 8, 1, 4), "rows", None),  # turned
        ((120, 40, 8, 2, 0), "rows", None),
    ],
)
def test_how_an_array_is_read_over_examples(strides, kind, found):
    assert OVER.reads(View(OVER.shape, strides), kind) == found


def test_rows_of_one_column_are_read_as_scalars_are():
    space, view = Space((2, 3, 1), 1, F32), View((2, 3, 1), (3, 1, 1))
    assert space.is_own(view, "rows", "rows") and space.is_own(view, "rows", "scalars")


@pytest.mark.parametrize(
    ("view", "dtype", "taken"),
    [
        (OWN, np.float32, True),
        (OWN, bool, True),
        (OWN, np.int32, False),
        (OF_ROWS, np.int32, True),
        (OF_ROWS, np.int64, True),
        (OF_ROWS, np.int16, False),
        (OWN, np.float64, False),
        (TURNED, np.float32, False),
    ],
)
def test_arrays_from_outside_that_can_be_read(view, dtype, taken):
    """Integers that differ by row alone are labels, which columns are compared with."""
    type = array_type(view.shape, np.dtype(dtype))
    assert Space((2, 3, 4, 5), 2, F32).takes(view, "rows", type) is taken


@pytest.mark.parametrize(
    ("sizes", "strides", "joined"),
    [
        ((2, 3), [(3, 1)], ([6], [[1]])),
        ((2, 3), [(6, 2), (3, 1)], ([6], [[2], [1]])),
        ((2, 3), [(0, 0)], ([6], [[0]])),
        ((2, 3), [(1, 2)], ([2, 3], [[1, 2]])),
        ((2, 3), [(3, 1), (0, 1)], ([2, 3], [[3, 1], [0, 1]])),
        ((2, 1, 3), [(3, 0, 1)], ([6], [[1]])),
        ((2, 3, 4), [(24, 4, 1)], ([2, 12], [[24, 1]])),
        ((2, 3, 4), [(12, 4, 2)], ([6, 4], [[4, 2]])),
        ((1, 1), [(0, 0)], ([], [[]])),
        ((), [()], ([], [[]])),
    ],
)
def test_axes_that_lie_in_a_row_for_all_arrays_are_one(sizes, strides, joined):
    assert row_program._joined(sizes, strides) == joined


@pytest.mark.parametrize("over", [True, False])
def test_a_result_shares_the_memory_of_an_input_that_no_later_instruction_reads(over):
    """Where the first's buffer is written over, what is read from there is another value."""
    load, exp = row_program.CODES["load"], row_program.CODES["exp"]
    chunk, none = row_program._CHUNK, row_program._NONE

    def read(at, array):
        return [load, chunk, at, -1, none, none, none, array, 0, 0]

    def made(at, to, of):
        return [exp, chunk, at, to, chunk, none, none, of, 0, 0]

    lines = [read(4, 1), read(2, 0), made(4 if over else 1, 1, 4), made(3, 0, 4)]
    shared = row_program._shared(lines, [5, 6], 2)
    assert shared == (((1, 6), (1, 5), (0, 6), (0, 5)) if over else ((1, 5), (0, 6), (0, 5)))
    assert row_program._shared(lines, [5, 6], 3) == ()

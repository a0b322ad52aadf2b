"""FlatBuffers: what is written is read, and nothing outside of the bytes."""

import random

import pytest

from stretto.export.flatbuffers import Number, Numbers, Record, read, written
from stretto.files.names import Damaged


def sample():
    inner = [Record(Number("b", k), f"name {k}", None, Numbers("H", (k, k + 1))) for k in range(3)]
    return written(
        Record(Number("H", 7), None, b"bytes", inner, ["a", "bé"], Number("?", 1), Number("I", 9))
    )


def taken(content):
    """All that the sample has, read."""
    table = read(content)
    return (
        [table.number(0, "H"), table.number(1, "I", 5), table.number(5, "B"), table.number(6, "I")],
        table.bytes(2),
        [(t.number(0, "b"), t.text(1), t.text(2), t.numbers(3, "H")) for t in table.tables(3)],
        table.texts(4),
        table.table(1),
        table.numbers(20, "H"),
    )


def test_what_is_written_is_read():
    assert taken(sample()) == (
        [7, 5, 1, 9],
        b"bytes",
        [(0, "name 0", "", (0, 1)), (1, "name 1", "", (1, 2)), (2, "name 2", "", (2, 3))],
        ("a", "bé"),
        None,
        (),
    )


def test_numbers_lie_at_multiples_of_their_size():
    content = written(Record(Number("b", 1), Number("Q", 2), Numbers("Q", (3,)), b"x" * 5))
    table = read(content)
    at, _ = table._vector(2, 8)
    assert at % 8 == table._place(1, 8) % 8 == 0 and table.numbers(2, "Q") == (3,)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_an_error_or_other_values(seed):
    rng, content = random.Random(seed), sample()
    refused = 0
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        damaged = bytes(damaged[: rng.randrange(4, len(damaged) + 1)])
        try:
            taken(damaged)
        except Damaged:
            refused += 1
    assert refused > 20


def test_offsets_that_lead_back_are_refused():
    wide = written(Record([Record() for _ in range(16)]))
    assert len(read(wide).tables(0)) == 16

    def visit(table):
        for child in table.tables(0):
            visit(child)

    # All sixteen offsets of the vector lead back to the root, in which the vector is.
    looped = bytearray(wide)
    at, count = read(wide)._vector(0, 4)
    root = int.from_bytes(wide[:4], "little")
    for k in range(count):
        place = at + 4 * k
        looped[place : place + 4] = ((root - place) % (1 << 32)).to_bytes(4, "little")
    with pytest.raises(Damaged):
        visit(read(bytes(looped)))


def test_a_table_led_to_more_often_than_there_is_room_is_refused():
    wide = bytearray(written(Record([Record() for _ in range(16)])))
    table = read(bytes(wide))
    with pytest.raises(Damaged, match="more often than there is room"):
        for _ in range(100):
            table.tables(0)


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff\xff\xff\xff", b"PK\x03\x04" * 10])
def test_what_is_no_flatbuffer_is_refused(content):
    with pytest.raises(Damaged):
        read(content).bytes(3)

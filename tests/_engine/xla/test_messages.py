"""The encoding of protocol buffers, by hand."""

from stretto._engine.xla.messages import field, fields, numbers


def test_fields_of_each_kind():
    message = bytes([0x08, 0x96, 0x01])  # 1: the integer 150
    message += bytes([0x12, 0x03]) + b"abc"  # 2: bytes
    message += bytes([0x19]) + bytes(8)  # 3: eight bytes
    message += bytes([0x25]) + bytes(4)  # 4: four bytes
    found = [(n, v if isinstance(v, int) else bytes(v)) for n, v in fields(message)]
    assert found == [(1, 150), (2, b"abc"), (3, bytes(8)), (4, bytes(4))]


def test_numbers_packed_or_alone():
    assert list(numbers(bytes([3, 0x8E, 0x02, 0x9E, 0xA7, 0x05]))) == [3, 270, 86942]
    assert list(numbers(7)) == [7]
    assert list(numbers(b"")) == []


def test_fields_that_are_written_are_read():
    content = bytes(300)
    message = field(500, content) + field(1, b"a")
    assert message[:2] == bytes([0xA2, 0x1F])  # 500 << 3 | 2
    assert [(n, bytes(v)) for n, v in fields(message)] == [(500, content), (1, b"a")]

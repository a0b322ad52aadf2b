"""Headers of the format; ``test_save_files`` has others read them.

Checksums: of everything in a file, in no particular order, and not of themselves.
"""

import json

import numpy as np

from stretto.files.file_parts import BLOCK, CHECKSUM, block_checksums, checksum, header, in_order


def test_names_types_and_places():
    arrays = {"a": np.ones(3, np.int8), "b": np.ones((2, 0)), "c": np.ones((), np.float64)}
    arrays = in_order(arrays)
    assert list(arrays) == ["b", "c", "a"]
    text = header(arrays, {"note": "é"})
    assert int.from_bytes(text[:8], "little") == len(text) - 8 and len(text) % 8 == 0
    assert json.loads(text[8:]) == {
        "__metadata__": {"note": "é"},
        "b": {"dtype": "F64", "shape": [2, 0], "data_offsets": [0, 0]},
        "c": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]},
        "a": {"dtype": "I8", "shape": [3], "data_offsets": [8, 11]},
    }


TYPES = {"w": ("F32", (2, 3)), "b": ("F32", (3,))}
WORDS = {"epoch": "7", "note": "é"}
BYTES = {"w": b"\x01" * 24, "b": b"\x02" * 12}


def digest(types=TYPES, words=WORDS, data=BYTES):
    return checksum(types, words, lambda name: [data[name]])


def test_the_order_and_the_checksum_itself_do_not_count():
    assert len(digest()) == 64 and digest() == digest()
    assert digest(dict(reversed(TYPES.items())), dict(reversed(WORDS.items()))) == digest()
    assert digest(words={**WORDS, CHECKSUM: "old"}) == digest()


def test_everything_else_does():
    others = [
        digest({**TYPES, "w": ("F32", (3, 2))}),
        digest({**TYPES, "w": ("I32", (2, 3))}),
        digest({"w": TYPES["w"]}),
        digest({"v": TYPES["w"], "b": TYPES["b"]}, data={**BYTES, "v": BYTES["w"]}),
        digest(words={**WORDS, "epoch": "8"}),
        digest(words={"epoch": "7"}),
        digest(data={**BYTES, "b": b"\x02" * 11 + b"\x03"}),
        digest(data={"w": BYTES["w"][:-1], "b": BYTES["b"]}),
    ]
    assert len({digest(), *others}) == len(others) + 1


def test_files_of_nothing():
    assert digest({}, {}) != digest({}, WORDS)


def test_the_elements_may_come_in_pieces():
    pieces = lambda name: [BYTES[name][:5], BYTES[name][5:]]
    assert checksum(TYPES, WORDS, pieces) == digest()


def test_blocks():
    data = bytes(BLOCK) + b"ab"
    first, last = block_checksums(data)
    assert block_checksums(memoryview(data)[BLOCK:]) == [last] and block_checksums(b"") == []
    changed = block_checksums(data[:-1] + b"c")
    assert changed[0] == first and changed[1] != last and len(first) == 16

"""Headers of the format; ``test_writing`` has others read them."""

import json

import numpy as np

from stretto.files.headers import header, in_order


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

"""How arguments and results are nested: read, taken apart, put together."""

import collections

import pytest

import stretto as st
from stretto.torch.programs.signature import LEAF, Structure, record

PAIR = Structure("tuple", children=(LEAF, Structure("list", children=(LEAF,))))
NAMED = Structure("named", "Out", ("loss", "logits"), (LEAF, PAIR))
DICT = Structure("dict", keys=("b", "a"), children=(LEAF, NAMED))


def test_taken_and_filled():
    value = {"a": record("Out", ("loss", "logits"))(1, (2, [3])), "b": 0}
    assert list(DICT.taken(value, "x")) == [
        ("x['b']", 0),
        ("x['a'].loss", 1),
        ("x['a'].logits[0]", 2),
        ("x['a'].logits[1][0]", 3),
    ]
    assert DICT.filled(iter([0, 1, 2, 3])) == value
    assert DICT.size == 4
    assert Structure.from_json(DICT.to_json()) == DICT


def test_records():
    out = NAMED.filled(iter([1, 2, 3]))
    assert out.loss == out["loss"] == out[0] == 1 and type(out).__name__ == "Out"
    assert st.tree.map(lambda x: x + 1, out).logits == (3, [4])
    assert type(NAMED.filled(iter([4, 5, 6]))) is type(out)
    with pytest.raises(ValueError, match="cannot be attributes"):
        record("Bad", ("class",))


def test_objects_with_the_fields_are_taken():
    class Output:
        loss, logits = 1, (2, [3])

    assert [leaf for _, leaf in NAMED.taken(Output(), "x")] == [1, 2, 3]
    pair = collections.namedtuple("pair", "loss logits")
    assert [leaf for _, leaf in NAMED.taken(pair(1, (2, [3])), "x")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("structure", "value", "message"),
    [
        (PAIR, 1, r"f: x: expected a tuple of 2, .*; got a int"),
        (PAIR, (1,), r"f: x: .*got 1 elements"),
        (PAIR, (1, 2), r"f: x\[1\]: expected a list of 1"),
        (DICT, [], r"expected a dictionary with the keys \['b', 'a'\].*got a list"),
        (DICT, {"a": 1}, r"got the keys \['a'\]"),
        (NAMED, 3, r"expected Out with the fields \['loss', 'logits'\]"),
    ],
)
def test_what_is_nested_otherwise(structure, value, message):
    with pytest.raises(TypeError, match=message):
        list(structure.taken(value, "f: x"))


@pytest.mark.parametrize("data", [["what", "", [], []], ["dict", "", ["a"], []]])
def test_what_is_no_structure(data):
    with pytest.raises(ValueError, match="no structure"):
        Structure.from_json(data)

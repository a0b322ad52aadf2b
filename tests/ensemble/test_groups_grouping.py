"""Mistakes in what an ensemble is made from are named, with the member and the part."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble.groups import (
    at_places,
    call_module,
    groups_of,
    join_groups,
    merge_equal_groups,
)

W = snp.ones((4, 2))


def product(params, x):
    return x @ params["w"]


def made(*args, shared=None, frozen=None, stacked=None):
    first, members = args if len(args) == 2 else (args[0], None)
    return groups_of(first, members, shared, frozen, stacked)


def test_members_are_grouped_by_function_and_structure():
    other = lambda p, x: x
    members = [{"w": W}, {"w": W, "b": W}, {"w": W}, {"w": W}]
    groups, arrays = made([product, product, other, product], members)
    assert [g.places for g in groups] == [(0, 3), (1,), (2,)]
    assert [[x.shape for x in column] for column in arrays] == [
        [(2, 4, 2)],
        [(1, 4, 2), (1, 4, 2)],
        [(1, 4, 2)],
    ]


def test_numbers_become_arrays_that_do_not_give_way():
    _, ((column,),) = made(product, [{"w": 1.0}, {"w": 2.0}])
    assert column.dtype == np.float32
    assert not column.weak_type


@pytest.mark.parametrize(
    ("args", "options", "error", "words"),
    [
        ((product,), {}, TypeError, "got a function without members"),
        (({"w": W}, [W]), {}, TypeError, "expected a function and its members, .* got dict first"),
        (([product, 3], [W, W]), {}, TypeError, "expected a function and its members, .* list"),
        (([product], [{"w": W}] * 2), {}, ValueError, "a function for each of 2 members, got 1"),
        (([product], {"w": W}), {}, TypeError, "a function for each member goes with a list"),
        (([{"w": W}],), {}, TypeError, "member 0 is a dict, expected a module"),
        (([nn.Linear(2, 2), W],), {}, TypeError, "member 1 is a .*Array.*, expected a module"),
        ((product, []), {}, ValueError, "expected at least one member, got none"),
        ((product, [{}]), {}, ValueError, r"member 0 is \{\}, which holds no arrays"),
        (([nn.Tanh()],), {}, ValueError, r"member 0 is Tanh\(\), which holds no arrays"),
        (
            (product, [{"w": W}, {"w": "no"}]),
            {},
            TypeError,
            "Ensemble: member 1: w must be an array",
        ),
        (
            (product, [{"w": W}, {"w": snp.ones((4, 3))}]),
            {},
            ValueError,
            r"member 1 differs from member 0 at w: expected float32\[4,2\], got float32\[4,3\]",
        ),
        (
            (product, [{"w": W}, {"w": W.astype(np.float16)}]),
            {},
            ValueError,
            r"member 1 differs from member 0 at w: expected float32\[4,2\], got float16\[4,2\]",
        ),
        (
            (product, {"w": snp.ones((3, 4)), "b": snp.ones((2, 4))}),
            {},
            ValueError,
            r"must agree in axis 0, the members; got b: float32\[2,4\], w: float32\[3,4\]",
        ),
        ((product, {"w": snp.ones(())}), {}, ValueError, r"agree in axis 0, .* w: float32\[\]"),
        ((product, {}), {}, ValueError, "agree in axis 0, .* no leaves"),
        ((product, {"w": snp.ones((0, 4))}), {}, ValueError, "at least one member, got none"),
        ((product, {"w": W}), {"shared": "w"}, ValueError, "agree in axis 0, .* no leaves"),
        (
            (product, [{"w": W}]),
            {"shared": "v"},
            ValueError,
            "shared: the pattern 'v' covers no part of a member; the parts are w",
        ),
        (
            (product, [{"w": W}]),
            {"frozen": ["w", "v.*"]},
            ValueError,
            r"frozen: the pattern 'v.\*' covers no part of a member; the parts are w",
        ),
        (
            (product, [{"w": W}, {"w": 2 * W}]),
            {"shared": "w"},
            ValueError,
            "w is to be shared, but member 1 has other values than member 0",
        ),
        (
            (product, [{"a": {"b": W}, "a.b": W}]),
            {},
            ValueError,
            r"tree\['a'\]\['b'\] and tree\['a.b'\] would both be called so",
        ),
    ],
)
def test_mistakes(args, options, error, words):
    with pytest.raises(error, match=words):
        made(*args, **options)


def test_shared_values_that_are_traced():
    @st.jit
    def inside(a, b):
        return made(product, [{"w": a}, {"w": b}], shared="w")[1][0][0]

    with pytest.raises(ValueError, match="shared part w of member 1 is a traced value of its own"):
        inside(W, W)
    same = st.jit(lambda a: made(product, [{"w": a}, {"w": a}], shared="w")[1][0][0])
    assert same(W).shape == (4, 2)


def test_patterns():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    (group,), _ = made([model], frozen=["0", "*.bias"])
    assert [n for n, t in zip(group.names, group.trained, strict=True) if t] == ["1.weight"]
    (group,), _ = made([model], shared=lambda name: name.endswith("weight"))
    assert [n for n, s in zip(group.names, group.shared, strict=True) if s] == [
        "0.weight",
        "1.weight",
    ]


def test_joined_groups_stand_behind():
    groups, arrays = made([nn.Linear(2, 2), nn.Linear(3, 2)])
    others, theirs = made([nn.Linear(3, 2), nn.Linear(2, 2), nn.Linear(1, 2)])
    both, columns = join_groups(groups, arrays, others, theirs)
    assert [g.places for g in both] == [(0, 3), (1, 2), (4,)]
    np.testing.assert_array_equal(columns[0][0], snp.concatenate([arrays[0][0], theirs[1][0]]))
    assert [g.places for g in groups] == [(0,), (1,)]


def test_merged_rows_are_in_the_order_of_places():
    (group,), _ = made([nn.Linear(2, 2)] * 2)
    rows = [[snp.full((2, 2, 2), i), snp.full((2, 2), i)] for i in (0.0, 1.0)]
    (one,), ((weight, _),) = merge_equal_groups(
        [at_places(group, (0, 3)), at_places(group, (1, 2))], rows
    )
    assert one.places == (0, 1, 2, 3)
    assert one.function is call_module
    np.testing.assert_array_equal(weight[:, 0, 0], [0, 1, 1, 0])


def test_new_members_of_another_dtype():
    groups, arrays = made(product, [{"w": W}])
    others = made(product, [{"w": W.astype(np.float16)}])
    with pytest.raises(ValueError, match=r"new members differ at w: .* got \(4, 2\) float16"):
        join_groups(groups, arrays, *others)

"""Members of an ensemble as a sequence: taken, added and removed."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.ensemble.models import X, close, mlps, product, trees


def test_members_by_index_slice_list_and_mask():
    models = mlps(5, 3, 5, 4)
    ensemble = st.Ensemble(models)
    full = np.asarray(ensemble(X))
    close(ensemble[-1](X), full[3])
    close(ensemble[np.int64(1)](X), full[1])
    close(ensemble[snp.int32(2)](X), full[2])
    close(ensemble[1:](X), full[1:])
    close(ensemble[::-1](X), full[::-1])
    close(ensemble[[2, 0, 2]](X), full[[2, 0, 2]])
    close(ensemble[snp.array([3, 1])](X), full[[3, 1]])
    mask = np.array([True, False, True, True])
    close(ensemble[mask](X), full[mask])
    close(ensemble[mask.tolist()](X), full[mask])
    close([m(X) for m in ensemble], full)
    assert [len(g) for g in ensemble[::-1].groups] == [1, 2, 1]  # as they first appear


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (3, IndexError, "Ensemble: member 3 of 3"),
        (-4, IndexError, "Ensemble: member -4 of 3"),
        ([0, 5], IndexError, "Ensemble: member 5 of 3"),
        ([True, False], IndexError, r"Ensemble: a mask of \(2,\) for 3 members"),
        (slice(2, 2), ValueError, "Ensemble: no member is left of 3"),
        ([], ValueError, "Ensemble: no member is left of 3"),
        ([0.5], TypeError, "index of a member must be an integer, got the float 0.5"),
    ],
    ids=str,
)
def test_members_that_are_not_there(index, error, words):
    with pytest.raises(error, match=words):
        st.Ensemble(product, trees(3))[index]


def test_append_extend_drop_and_sum():
    models = mlps(5, 3, 5, 3)
    ensemble = st.Ensemble(models[:2])
    assert ensemble.append(models[2]) is ensemble
    ensemble.extend(models[3:])
    assert [len(g) for g in ensemble.groups] == [2, 2]
    close(ensemble(X), [m(X) for m in models])
    assert ensemble.drop(1) is ensemble
    close(ensemble(X), [models[i](X) for i in (0, 2, 3)])
    ensemble.drop([0, -1])
    close(ensemble(X), [models[2](X)])
    assert len(st.Ensemble(models).drop(slice(1, None))) == 1
    close(st.Ensemble(models).drop([True, False, True, True])(X), [models[1](X)])
    both = st.Ensemble(models[:1]) + st.Ensemble(models[1:])
    close(both(X), [m(X) for m in models])
    with pytest.raises(ValueError, match="no member is left of 1"):
        ensemble.drop(0)
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = ensemble + models


def test_members_taken_out_can_be_put_in():
    double = lambda p, x: 2 * product(p, x)
    ensemble, other = st.Ensemble(product, trees(2)), st.Ensemble(double, trees(2))
    full = np.asarray(ensemble(X))
    ensemble.append(ensemble[0]).append(other[1])
    close(ensemble(X), [*full, full[0], other(X)[1]])


def test_taking_a_group_leaves_the_ensemble():
    ensemble = st.Ensemble(product, trees(2))
    ensemble.groups[0].drop(0)
    assert len(ensemble) == 2


def test_what_cannot_be_appended():
    ensemble = st.Ensemble(mlps(5))
    with pytest.raises(TypeError, match="member 0 is a dict, expected a module"):
        ensemble.append({"w": snp.ones(2)})
    with pytest.raises(ValueError, match=r"new members differ at w: expected \(4, 2\) float32"):
        st.Ensemble(product, trees(2)).append({"w": snp.ones((4, 3)), "b": snp.ones(2)})
    several = st.Ensemble([product, lambda p, x: x], trees(2))
    with pytest.raises(ValueError, match="has several functions; give an Ensemble"):
        several.append(trees(1)[0])
    shared = st.Ensemble(product, [trees(1)[0]] * 2, shared="w")
    with pytest.raises(ValueError, match="w is shared by the present members"):
        shared.append({"w": snp.zeros((4, 2)), "b": snp.zeros(2)})


def test_new_members_get_what_is_shared():
    first = trees(1)[0]
    ensemble = st.Ensemble(product, [first] * 2, shared="w")
    ensemble.append({"w": first["w"], "b": snp.ones(2)})
    assert ensemble.state_dict()[0]["w"].shape == (4, 2)
    assert ensemble.state_dict()[0]["b"].shape == (3, 2)
    apart = st.Ensemble(product, trees(1)) + st.Ensemble(product, [first] * 2, shared="w")
    assert apart.state_dict()[0]["w"].shape == (3, 4, 2)


def test_messages_name_the_method_that_was_called():
    several = st.Ensemble([product, lambda p, x: x], trees(2))
    with pytest.raises(ValueError, match=r"Ensemble.append: the ensemble has several functions"):
        several.append(trees(1)[0])
    with pytest.raises(ValueError, match=r"Ensemble.extend: the ensemble has several functions"):
        several.extend(trees(1))


def test_the_sum_of_a_subclass_is_one():
    class Committee(st.Ensemble):
        pass

    both = Committee(product, trees(2)) + st.Ensemble(product, trees(1))
    assert type(both) is Committee
    assert type(both.append(trees(1)[0])) is Committee
    assert len(both) == 4


def test_the_class_can_be_indexed_by_the_type_of_its_members():
    ensemble = st.Ensemble[nn.Sequential](mlps(5, 5))
    assert type(ensemble) is st.Ensemble
    assert len(ensemble[:1]) == 1

"""Which name was meant, and what is said of one that is unknown."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from stretto._engine.core.errors import meant, refuse_unknown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("learning_rat", "learning_rate"),
        ("lr", "learning_rate"),
        ("wd", "weight_decay"),
        ("bet", None),  # begins as b1 does, which has no such letters
        ("wx", None),
        ("rate", None),  # in a name, but not where it begins
        ("zzz", None),
        ("", None),
    ],
)
def test_what_was_meant(name, expected):
    assert meant(name, ["b1", "learning_rate", "weight_decay"]) == expected


def test_functions_that_take_any_name_refuse_none():
    refuse_unknown("f", "argument", ["anything"], lambda **names: names, "g")


def test_optimizers_say_what_they_have():
    words = r"adam has no hyperparameter 'lr' \(did you mean 'learning_rate'\?\); it has learning_"
    with pytest.raises(TypeError, match=words):
        optim.inject_hyperparams(optim.adam)(lr=0.1)
    with pytest.raises(TypeError, match=words):
        optim.per_member(optim.adam, lr=[0.1, 0.2])
    ensemble = st.Ensemble(lambda p, x: p * x, [snp.ones(()), snp.zeros(())])
    with pytest.raises(TypeError, match="fit: hyperparams: adam has no argument 'lr'"):
        ensemble.fit(
            lambda m, x: m(x).sum(), snp.ones(4), optim.adam, steps=1, hyperparams={"lr": 0.1}
        )

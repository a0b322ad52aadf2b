"""Texts and cards of ensembles and their members."""

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.pages import page_of, printed, text_in


def make(key):
    return nn.Linear(4, 3, key=key)


def test_an_ensemble_of_modules():
    ensemble = st.Ensemble.init(make, st.random.key(0), 5)
    assert repr(ensemble) == "Ensemble of 5 members\n  5 × Linear: 2 arrays each, 15 numbers"
    text = text_in(ensemble)
    assert "1 architecture · 300 bytes" in text and "weight: float32[5,3,4]" in text
    assert "5 × Linear" in printed(ensemble)


def test_shared_frozen_and_evaluated():
    trunk = make(st.random.key(0))
    keys = st.random.split(st.random.key(1), 3)
    members = [nn.Sequential(trunk, nn.Linear(3, 1, key=key)).eval() for key in keys]
    ensemble = st.Ensemble(members, shared="0.*", frozen="1.bias", chunk_size=2, plan="in turn")
    assert repr(ensemble) == (
        "Ensemble of 3 members\n  3 × Sequential: 4 arrays each, 19 numbers, 2 of 4 arrays shared, "
        "18 trained, in evaluation mode"
    )
    text = text_in(ensemble)
    assert "0.weight: float32[3,4] shared" in text and "1.bias: float32[3,1] not trained" in text
    assert "chunks of 2" in text and "plan in turn" in text


def test_an_ensemble_of_functions():
    def apply(params, x):
        return params["<script>"] * x

    apply.__name__ = "<script>alert(1)</script>"
    ensemble = st.Ensemble(apply, [{"<script>": 1.0}, {"<script>": 2.0}])
    assert "<script>: float32[2]" in text_in(ensemble) and "2 × <script>alert" in text_in(ensemble)
    assert "<script>" in text_in(ensemble[0]) and "float32[]" in text_in(ensemble[0])


def test_many_architectures():
    ensemble = st.Ensemble([nn.Linear(1, n) for n in range(1, 80)])
    assert repr(ensemble).count("\n") < 40 and "... 49 more architectures" in repr(ensemble)
    page_of(ensemble)
    assert printed(ensemble).count("\n") <= 45


def test_members_of_functions():
    small = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])[0]
    assert repr(small) == "Member(<lambda>, Array(2., dtype=float32))"
    params = {"w": snp.ones((2, 30, 30)), "b": snp.ones((2, 30))}
    large = st.Ensemble(lambda p, x: x @ p["w"] + p["b"], params)[1]
    assert repr(large) == "Member(<lambda>, <dict of 2 arrays, 930 numbers, 3.7 kB>)"


def test_inside_transformations():
    ensemble = st.Ensemble.init(make, st.random.key(0), 5)
    seen = []

    @st.jit
    def f(ensemble):
        seen.append((repr(ensemble), text_in(ensemble)))
        return ensemble

    f(ensemble)
    assert seen[0][0] == repr(ensemble) and "traced float32[5,3,4]" in seen[0][1]
    other = st.tree.map(lambda x: None, ensemble)
    assert "Ensemble of 5 members" in repr(other) and "5 × Linear" in text_in(other)

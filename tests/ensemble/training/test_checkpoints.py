"""Checkpoints: exact resumption, what is kept, and what is refused in words."""

import os

import numpy as np
import pytest

import stretto as st
from stretto import nn, optim
from stretto.ensemble import Checkpoints, EarlyStopping
from stretto.ensemble.training import checkpoints

KEY = st.random.PRNGKey(0)
X = np.random.default_rng(0).normal(size=(24, 2)).astype(np.float32)
Y = X.sum(1)


class Net(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.fc = nn.Linear(2, 2, key=key)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.fc(x)).sum(-1)


def squares(member, x, y):
    return ((member(x) - y) ** 2).mean()


def ensemble(count=3):
    return st.Ensemble([Net(k) for k in st.random.split(KEY, count)])


def fit(directory, e=None, **options):
    defaults = {
        "epochs": 2, "batch_size": 8, "key": KEY, "validation": (X, Y),
        "hyperparams": {"learning_rate": [0.1, 0.01, 0.05]},
    }  # fmt: skip
    options = {**defaults, **options}
    loss, optimizer = options.pop("loss", squares), options.pop("optimizer", optim.adam)
    data = options.pop("data", (X, Y))
    e = e or ensemble()
    return e.fit(loss, data, optimizer, checkpoint=directory, **options)


def same_bits(one, other):
    for x, y in zip(
        st.tree.leaves((one.ensemble, one.state.packs, one.state.finished)),
        st.tree.leaves((other.ensemble, other.state.packs, other.state.finished)),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)
    assert set(one.history) == set(other.history)
    for name, x in one.history.items():
        np.testing.assert_array_equal(x, other.history[name], err_msg=name)


class Interrupted(Exception):
    pass


def interrupted(monkeypatch, directory, after, **options):
    """Train until so many files were written."""
    written = []
    save = Checkpoints.save

    def counted(self, *args):
        save(self, *args)
        written.append(args)
        if len(written) == after:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", counted)
        with pytest.raises(Interrupted):
            fit(directory, **options)


@pytest.mark.parametrize("after", [1, 2, 5])
def test_the_same_bits_as_without_a_break(tmp_path, monkeypatch, after):
    often = lambda name: Checkpoints(tmp_path / name, every_steps=1)
    whole = fit(often("whole"))
    interrupted(monkeypatch, often("broken"), after)
    same_bits(fit(often("broken"), resume=True), whole)
    # A run that has ended is not gone on with, and gives the same again.
    same_bits(fit(often("broken")), whole)


def test_how_often_files_are_written_changes_no_bit(tmp_path, monkeypatch):
    whole = fit(None)
    interrupted(monkeypatch, Checkpoints(tmp_path, every_steps=2), 2)
    same_bits(fit(Checkpoints(tmp_path, every_seconds=100)), whole)


def test_more_epochs_go_on_from_the_end(tmp_path):
    fit(tmp_path, epochs=1)
    same_bits(fit(tmp_path, epochs=2), fit(None, epochs=2))


def test_a_typed_key_gives_the_numbers_of_its_words(tmp_path):
    key = st.random.wrap_key_data(KEY)
    fit(tmp_path, epochs=1, key=key)
    resumed = fit(tmp_path, epochs=2, key=key)
    assert bool(resumed.state.key == key)
    same_bits(resumed, fit(None, epochs=2))


def test_stopped_members_stay_stopped(tmp_path, monkeypatch):
    options = {
        "optimizer": lambda learning_rate: optim.scale(-learning_rate),
        "hyperparams": {"learning_rate": [0.1, -0.1, -0.1]},
        "early_stopping": EarlyStopping(1),
        "epochs": 5,
    }
    whole = fit(None, **options)
    assert whole.stopped and whole.state.finished[0]
    interrupted(monkeypatch, tmp_path, 3, **options)
    same_bits(fit(tmp_path, **options), whole)


def test_batches_that_come_are_gone_through_up_to_the_place(tmp_path, monkeypatch):
    batches = [(X[i : i + 6], Y[i : i + 6]) for i in range(0, 24, 6)]
    options = {"data": batches, "batch_size": None}
    whole = fit(None, **options)
    assert whole.state.step == 8
    interrupted(monkeypatch, Checkpoints(tmp_path, every_steps=1), 6, **options)
    same_bits(fit(tmp_path, **options), whole)


def test_the_last_files_are_kept(tmp_path):
    fit(Checkpoints(tmp_path, every_steps=1, keep=2))
    assert sorted(os.listdir(tmp_path)) == [
        "step-000000000005.safetensors",
        "step-000000000006.safetensors",
    ]
    assert Checkpoints(tmp_path).steps() == [5, 6]


def test_what_was_not_finished_is_removed(tmp_path):
    (tmp_path / ".stretto-0123456789abcdef").write_bytes(b"half")
    fit(tmp_path, epochs=1)
    assert os.listdir(tmp_path) == ["step-000000000003.safetensors"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 4}, r"order: .*batch_size=8.* in the checkpoint, .*batch_size=4.* here"),
        ({"order": "same"}, "order='own'.* in the checkpoint, .*order='same'"),
        ({"data": (X + 1, Y)}, "data: .*CRC .* in the checkpoint"),
        ({"key": st.random.PRNGKey(9)}, r"key: \[0, 0\] in the checkpoint, \[0, 9\] here"),
        ({"optimizer": optim.adamax}, r"program of a step \(loss, optimizer, model\)"),
        ({"loss": lambda m, x, y: squares(m, x, 2 * y)}, "program of a step"),
        ({"hyperparams": {"learning_rate": [0.1, 0.01, 0.06]}}, "hyperparameters: CRC"),
        ({"e": ensemble(2), "hyperparams": None, "optimizer": optim.adam(0.1)}, "at .0, 1, 2. in"),
        ({"early_stopping": 3}, "early_stopping: None in the checkpoint, EarlyStopping.patience=3"),
        ({"on_divergence": "freeze"}, "on_divergence: raise in the checkpoint, freeze here"),
        ({"resume": False}, "resume=False, but .*step-000000000003.safetensors is there"),
        ({"resume": "yes"}, "resume must be True, False or 'auto', got 'yes'"),
    ],
    ids=["batch", "order", "data", "key", "optimizer", "loss", "rates", "members", "stopping",
         "reaction", "no resume", "resume"],
)  # fmt: skip
def test_another_configuration_is_refused(tmp_path_factory, options, words):
    directory = tmp_path_factory.getbasetemp() / "configuration"
    if not directory.exists():
        fit(directory, epochs=1)
    with pytest.raises(ValueError, match=words):
        fit(directory, **{"epochs": 1, **options})


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint in"):
        fit(tmp_path, resume=True)
    path = Checkpoints(tmp_path).path(3)
    st.save(path, {"w": X})
    with pytest.raises(ValueError, match="it has no checksum"):
        fit(tmp_path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="truncated"):
        fit(tmp_path)


# Damage


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Two checkpoints, and the arguments with which ``fit`` resumes."""
    directory = tmp_path_factory.mktemp("kept")
    fit(Checkpoints(directory, every_steps=3), epochs=2, batch_size=4)
    given, resume = [], Checkpoints.resume

    def noted(self, *how):
        given.append(how)
        return resume(self, *how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "resume", noted)
        fit(Checkpoints(directory, every_steps=3), epochs=2, batch_size=4)
    found = Checkpoints(directory)
    steps = found.steps()[-2:]
    return {s: found.path(s).read_bytes() for s in steps}, given[0]


@pytest.fixture
def two(kept, tmp_path):
    """A directory with the two, and the paths of the newest and of the one before."""
    contents, how = kept
    files = Checkpoints(tmp_path)
    older, newest = (files.path(step) for step in contents)
    for path, content in zip((older, newest), contents.values(), strict=True):
        path.write_bytes(content)
    return files, how, older, newest


def falls_back(two):
    files, how, older, newest = two
    said = rf"going on from {older}, as later checkpoints are damaged:\n  .*load: {newest}"
    with pytest.warns(UserWarning, match=said):
        state = files.resume(*how)
    assert state.step == files.steps()[0] and st.tree.leaves(state.packs)


def test_the_newest_is_resumed_without_a_word(two):
    files, how, _, _ = two
    assert files.resume(*how).step == files.steps()[-1]


def test_one_cut_off_anywhere_is_passed_over(two):
    whole = two[3].read_bytes()
    for length in [*range(20), *range(20, len(whole), len(whole) // 50), len(whole) - 1]:
        two[3].write_bytes(whole[:length])
        falls_back(two)


def places_of(whole):
    """Some bytes of each part of a file: its length, description, own words, and elements."""
    end = 8 + int.from_bytes(whole[:8], "little")
    draw = np.random.default_rng(0)
    parts = [range(8), range(8, end), range(end, len(whole))]
    words = whole.index(b"stretto.fit"), whole.index(b"stretto.checksum")
    parts += [range(at, at + 90) for at in words]
    return [int(p) for part in parts for p in draw.choice(part, min(40, len(part)), replace=False)]


def test_one_with_a_flipped_bit_is_passed_over(two):
    whole = two[3].read_bytes()
    for place in places_of(whole):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        two[3].write_bytes(damaged)
        falls_back(two)


OTHERS = {
    "nothing": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "zeros at its end": lambda path: os.truncate(path, 99) or os.truncate(path, 9999),
    "more at its end": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "text": lambda path: path.write_text("no checkpoint"),
    "parameters": lambda path: st.save(path, {"w": X}),
    "a folder": lambda path: path.unlink() or path.mkdir(),
    "a pipe": lambda path: path.unlink() or os.mkfifo(path),
}


@pytest.mark.parametrize("other", OTHERS)
def test_something_else_in_its_place_is_passed_over(two, other):
    OTHERS[other](two[3])
    falls_back(two)


def test_one_that_goes_meanwhile_is_passed_over(two, monkeypatch):
    steps = two[0].steps()
    two[3].unlink()
    monkeypatch.setattr(Checkpoints, "steps", lambda self: steps)
    files, how, older, newest = two
    with pytest.warns(UserWarning, match=rf"going on from {older}, (.|\n)*{newest}"):
        assert files.resume(*how).step == steps[0]


def test_without_a_whole_one_an_error_says_how_to_go_on(two):
    files, how, older, newest = two
    newest.write_bytes(newest.read_bytes()[:-1])
    st.save(older, {"w": X})
    with pytest.raises(ValueError) as caught:
        files.resume(*how)
    said = str(caught.value).split("\n")
    assert said[0] == "fit: there is no whole checkpoint to go on from:"
    assert said[1].startswith(f"  load: {newest}: it is ")
    assert said[2] == f"  load: {older}: it has no checksum"
    assert said[3] == (
        "put a copy of one there, or remove them to start again, or give another directory"
    )


def test_trouble_that_is_none_of_the_file_is_raised(two, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoints, "load_checked", refuse)
    with pytest.raises(PermissionError):
        two[0].resume(*two[1])


def test_a_training_goes_on_from_the_one_before_to_the_same_bits(tmp_path, monkeypatch):
    often = lambda name: Checkpoints(tmp_path / name, every_steps=1, keep=2)
    whole = fit(often("whole"))
    interrupted(monkeypatch, often("broken"), 4)
    files = often("broken")
    assert files.steps() == [3, 4]
    files.path(4).write_bytes(files.path(4).read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"going on from .*03.safetensors, (.|\n)*04.safetensors"):
        resumed = fit(files)
    same_bits(resumed, whole)
    assert files.steps() == [5, 6]
    same_bits(fit(files), whole)


def test_one_that_was_passed_over_pushes_no_whole_one_out(two):
    """Were it counted among those that stay, nothing would be left to go on from."""
    files, how, _, newest = two
    newest.write_bytes(b"")
    one = Checkpoints(files.directory, keep=1)
    falls_back(two)
    with pytest.warns(UserWarning):
        state = one.resume(*how)
    one.save(state.replace(step=state.step + 1), how[1])
    assert one.steps() == [state.step + 1, files.steps()[-1]]
    with pytest.warns(UserWarning):
        assert one.resume(*how).step == state.step + 1


def test_when():
    state = fit(None, epochs=1).state.replace(step=6, epoch=2)
    assert Checkpoints("x").due(state, True, 0) and not Checkpoints("x").due(state, False, 1e9)
    assert Checkpoints("x", every_steps=3).due(state, False, 0)
    assert not Checkpoints("x", every_steps=4).due(state, True, 0)
    assert Checkpoints("x", every_epochs=2).due(state, True, 0)
    assert not Checkpoints("x", every_epochs=2).due(state, False, 0)
    assert Checkpoints("x", every_seconds=1.5).due(state, False, 2)
    with pytest.raises(ValueError, match="Checkpoints: keep must be at least 1, got 0"):
        Checkpoints("x", keep=0)

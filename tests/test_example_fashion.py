"""The example of thirty CNNs, with two tiny ones on images that are easy to tell apart."""

import numpy as np
import pytest

import stretto as st
from examples.fashion import __main__ as fashion
from examples.fashion import data, models, scoring, training
from stretto import nn
from stretto.demo.data import Labeled


def bands(count, seed):
    """Images of noise with a bright band, whose place is the class."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(10, size=count).astype(np.int32)
    images = draw.integers(60, size=(count, 28, 28))
    for image, label in zip(images, labels):
        image[2 * label + 3 : 2 * label + 6] += 150
    return Labeled(images.astype(np.uint8).reshape(count, -1), labels)


@pytest.fixture(scope="module")
def given():
    unknown = np.random.default_rng(9).integers(256, size=(40, 28, 28)).astype(np.uint8)
    return data.prepare(bands(640, 0), bands(100, 1), bands(100, 2), unknown)


def tiny():
    return nn.Sequential(
        *models.normalized(1, 4, 4, stride=4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(4 * 7 * 7, 10),
    )


def test_everything_from_first_weights_to_the_file(given, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(models.ARCHITECTURES, "tiny", tiny)
    path = tmp_path / "fashion.safetensors"
    few = "--architectures tiny --members 2 --draws 640 --epochs 2 --batch 32 --snapshots 2"
    options = fashion.options_of([*few.split(), "--between", "8", "--file", str(path)])
    ensemble = fashion.run(given, options)
    probs = nn.softmax(scoring.predict(ensemble, given.judge.images), -1)
    assert float(st.ensemble.accuracy(probs.mean(0), given.judge.labels)) > 0.95
    assert len(ensemble) == 2 and not (probs[0] == probs[1]).all()

    said = capsys.readouterr().out
    for title in ("combined", "by architecture", "AUROC of digits", "Soups across members"):
        assert title in said
    again = st.Ensemble.load(path, models.make(("tiny",), 1, st.random.PRNGKey(5)).eval())
    np.testing.assert_array_equal(
        scoring.predict(again, given.judge.images), scoring.predict(ensemble, given.judge.images)
    )


def test_scores_have_the_spread_of_members_and_of_examples():
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=2000).astype(np.int32)
    right = rng.random((3, 2000)) < 0.8
    classes = np.where(right, labels, (labels + 1) % 10)
    probs = np.full((3, 2000, 10), 0.01, np.float32)
    np.put_along_axis(probs, classes[..., None], 0.91, axis=-1)
    value, spread = scoring.of_members("", probs, labels).values["accuracy"]
    np.testing.assert_allclose(value, right.mean(), rtol=1e-5)
    np.testing.assert_allclose(spread, right.mean(1).std(ddof=1), rtol=1e-4)
    value, spread = scoring.of_one("", probs[0], labels).values["accuracy"]
    share = right[0].mean()
    np.testing.assert_allclose(value, share, rtol=1e-5)
    # The standard error of a share; that of 200 resamples is known to some 5 %.
    np.testing.assert_allclose(spread, np.sqrt(share * (1 - share) / 2000), rtol=0.2)


@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
def test_architectures_take_images_and_are_normalized(architecture):
    with nn.keys(st.random.PRNGKey(0)):
        model = models.ARCHITECTURES[architecture]()
    kinds = {type(m) for m in model.modules()}
    assert {nn.Conv2d, nn.BatchNorm2d, nn.Dropout, nn.Linear} <= kinds
    shape = st.eval_shape(lambda m, x: m(x), model.eval(), np.ones((3, 1, 28, 28), np.float32))
    assert shape.shape == (3, 10)


def test_members_of_each_architecture_have_the_same_rates():
    ensemble = models.make(("plain", "strided"), 3, st.random.PRNGKey(0))
    own = training.rates(training.Plan(lowest=1e-3, highest=4e-3), 3)
    np.testing.assert_allclose(training.of_all(ensemble, own), [1e-3, 2e-3, 4e-3] * 2, rtol=1e-6)
    assert [len(group) for group in ensemble.groups] == [3, 3]


def test_choosing_on_validation_leaves_the_test_images_alone(tmp_path):
    for prefix, part in (("train", bands(240, 0)), ("t10k", bands(50, 1))):
        for kind, x, shape in (
            ("images-idx3", part.images, (len(part.labels), 28, 28)),
            ("labels-idx1", part.labels, (len(part.labels),)),
        ):
            header = (0x0800 + len(shape)).to_bytes(4) + b"".join(n.to_bytes(4) for n in shape)
            (tmp_path / f"{prefix}-{kind}-ubyte").write_bytes(header + x.astype(np.uint8).tobytes())
    test = data.load(tmp_path, tmp_path, "test")
    validation = data.load(tmp_path, tmp_path, "validation")
    assert [len(p.labels) for p in test[:3]] == [220, 20, 50]
    assert [len(p.labels) for p in validation[:3]] == [220, 10, 10]
    both = np.concatenate([validation.fit.images, validation.judge.images])
    np.testing.assert_array_equal(both, test.fit.images)
    np.testing.assert_array_equal(test.judge.images, test.unknown)


def test_one_member_has_no_spread(capsys):
    with pytest.raises(SystemExit):
        fashion.options_of(["--members", "1"])
    assert "--members must be at least 2" in capsys.readouterr().err


def test_data_that_are_not_there_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["fashion", "--data", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match=r"no such directory\nInstall Fashion-MNIST"):
        fashion.main()

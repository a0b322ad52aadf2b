"""The whole demo: wrong data, training that cannot be, and all of it from end to end."""

import pytest

from stretto import cli
from stretto.demo import comparison, training
from tests.test_cli import outcome


def test_wrong_data(capsys, tmp_path):
    picture = ["--picture", str(tmp_path / "picture.png")]
    absent = tmp_path / "absent"
    status, line = outcome(capsys, "demo", "--data", str(absent), *picture)
    assert (status, line) == (2, f"stretto demo: {absent}: no such directory\n")
    status, line = outcome(capsys, "demo", "--data", str(tmp_path), *picture)
    assert status == 2
    assert line.endswith("train-images-idx3-ubyte.gz: no such file\n")
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b\x08\0")
    status, line = outcome(capsys, "demo", "--data", str(tmp_path), *picture)
    assert status == 2
    assert "truncated" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", "801"], "a batch of 801 is more than the 800 draws of a member"),
        (
            ["--rates", "0.001", "1e30", "--draws", "64", "--epochs", "2"],
            "member 1 diverged: its loss is nan after epoch",
        ),
    ],
)
def test_training_that_cannot_be(capsys, tmp_path, options, message):
    picture = ["--picture", str(tmp_path / "picture.png")]
    status = cli.main(["demo", "--digits", "--members", "2", *picture, *options])
    line = capsys.readouterr().err
    assert status == 2
    assert message in line
    assert line.count("\n") == 1


def test_end_to_end(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "_IMAGES_AT_ONCE", 500)  # prediction in parts
    monkeypatch.setattr(comparison, "ROUNDS", 2)
    picture = tmp_path / "picture.png"
    argv = ["demo", "--digits", "--members", "2", "--epochs", "1", "--picture", str(picture)]
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    for words in ("mean member", "best member", "ensemble mean", "uniform soup", "as one program"):
        assert words in out
    assert str(picture.resolve()) in out
    assert picture.read_bytes().startswith(b"\x89PNG")

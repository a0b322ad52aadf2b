"""The command line: what is wrong is said in one line on standard error, with status 2."""

import os
import re

import pytest

from stretto import cli
from stretto.demo import extras, timing, training


def outcome(capsys, *argv):
    """The exit status, and the one line on standard error."""
    status = cli.main(argv)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"[^\n]+\n", err)
    return status, err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "stretto: the following arguments are required: COMMAND (see stretto --help)"),
        (["dmeo"], "stretto: argument COMMAND: invalid choice: 'dmeo'"),
        (["demo", "--frob"], "stretto: unrecognized arguments: --frob"),
        (["demo", "--member", "3"], "unrecognized arguments: --member 3"),
        (
            ["demo", "--members", "0"],
            "stretto demo: argument --members: expected a whole number from 1 to 1000, got '0'",
        ),
        (["demo", "--members", "ten"], "got 'ten'"),
        (["demo", "--members"], "argument --members: expected one argument"),
        (["demo", "--epochs", "-1"], "expected a whole number of at least 1, got '-1'"),
        (["demo", "--batch", "1.5"], "got '1.5'"),
        (["demo", "--seed", str(2**32)], f"from 0 to {2**32 - 1}, got '{2**32}'"),
        (["demo", "--rates", "0.1", "nan"], "expected a finite number above 0, got 'nan'"),
        (["demo", "--rates", "0.1", "0"], "got '0'"),
        (["demo", "--digits", "--data", "x"], "--data: not allowed with argument --digits"),
    ],
)
def test_wrong_options(capsys, argv, message):
    status, line = outcome(capsys, *argv)
    assert status == 2
    assert message in line


def test_no_file_to_draw_into(capsys, tmp_path):
    pipe = tmp_path / "picture.png"
    os.mkfifo(pipe)
    status, line = outcome(capsys, "demo", "--digits", "--picture", str(pipe))
    assert status == 2
    assert "is not a regular file" in line


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
    ("name", "message"),
    [
        ("picture.bmpx", "expected a name that ends in one of ."),
        ("picture", "expected a name that ends in one of ."),
        ("nowhere/picture.png", "nowhere: no such directory"),
        ("taken.png", "is a directory"),
    ],
)
def test_wrong_picture(capsys, tmp_path, name, message):
    (tmp_path / "taken.png").mkdir()
    status, line = outcome(capsys, "demo", "--digits", "--picture", str(tmp_path / name))
    assert status == 2
    assert message in line


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("matplotlib", "drawing the picture needs the package matplotlib"),
        ("sklearn", "reading the digits needs the package scikit-learn"),
    ],
)
def test_missing_packages(capsys, monkeypatch, tmp_path, missing, message):
    real = extras.import_module

    def import_module(name):
        if name.startswith(missing):
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name)

    monkeypatch.setattr(extras, "import_module", import_module)
    status, line = outcome(capsys, "demo", "--digits", "--picture", str(tmp_path / "picture.png"))
    assert (status, line) == (2, f"stretto demo: {message}: pip install 'stretto[demo]'\n")


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


def test_interruption(capsys, monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("stretto.demo.run.run", interrupt)
    status, line = outcome(capsys, "demo")
    assert (status, line) == (130, "stretto demo: interrupted\n")


def test_help(capsys):
    assert cli.main(["demo", "--help"]) == 0
    out, err = capsys.readouterr()
    assert "--members N" in out
    assert err == ""


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert re.fullmatch(r"stretto \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_end_to_end(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "_IMAGES_AT_ONCE", 500)  # prediction in parts
    monkeypatch.setattr(timing, "ROUNDS", 2)
    picture = tmp_path / "picture.png"
    argv = ["demo", "--digits", "--members", "2", "--epochs", "1", "--picture", str(picture)]
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    for words in ("mean member", "best member", "ensemble mean", "uniform soup", "as one program"):
        assert words in out
    assert str(picture.resolve()) in out
    assert picture.read_bytes().startswith(b"\x89PNG")

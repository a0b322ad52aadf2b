"""The picture: where it cannot be drawn is found out before the training."""

import os

import pytest

from tests.test_cli import outcome


def test_no_file_to_draw_into(capsys, tmp_path):
    pipe = tmp_path / "picture.png"
    os.mkfifo(pipe)
    status, line = outcome(capsys, "demo", "--digits", "--picture", str(pipe))
    assert status == 2
    assert "is not a regular file" in line


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

"""The index of several files: back as it was, or refused in words; and what removing leaves."""

import json
import os

import pytest

from stretto.files.grids import Grid, Part
from stretto.files.names import Damaged
from stretto.files.parts import (
    Index,
    data_name,
    folder_of,
    index_text,
    parse_index,
    remove,
    remove_parts,
)

ONE, TWO = data_name("0" * 16, 0), data_name("0" * 16, 1)
INDEX = Index(
    {ONE: 100, TWO: 64},
    {
        "w": ("F32", Grid((4, 2), (2, 2), [Part(ONE, 80, ("ab",)), Part(TWO, 48, ("cd", "ef"))])),
        "s": ("BOOL", Grid((), (), [Part(ONE, 99, ("00",))])),
        "empty": ("I8", Grid((0, 8), (0, 1), [])),
    },
)


def test_back_as_it_was():
    assert parse_index(index_text(INDEX)) == INDEX


def changed(**entries):
    return json.dumps({**json.loads(index_text(INDEX)), **entries})


def array(**entries):
    said = json.loads(index_text(INDEX))["arrays"]
    return changed(arrays={**said, "w": {**said["w"], **entries}})


DAMAGED = {
    "text": ("{", "is damaged"),
    "list": ("[]", "is damaged"),
    "version": (changed(version=9), "is of version 9 with blocks of 1048576"),
    "block": (changed(block=5), "blocks of 5 bytes, and this Stretto knows 1"),
    "elsewhere": (changed(files=[["../secret", 3]]), "names a file '../secret'"),
    "absolute": (changed(files=[["/etc/passwd", 3]]), "names a file '/etc/passwd'"),
    "size": (changed(files=[[ONE, -3]]), "-3 is not a size"),
    "missing": (array(parts=[[0, 80, ["ab"]]]), r"has 2 parts of shape \(2, 2\), and 1 are listed"),
    "too many": (array(parts=[[0, 80, ["ab"]]] * 3), "and 3 are listed"),
    "uneven": (array(part=[3, 2]), r"w of shape \(4, 2\) has parts of shape \(3, 2\)"),
    "axes": (array(part=[2]), "has parts of shape"),
    "nothing": (array(part=[0, 2]), "has parts of shape"),
    "no file": (array(parts=[[0, 80, []], [2, 80, []]]), "index out of range"),
    "offset": (array(parts=[[0, 1.5, []], [0, 80, []]]), "1.5 is not a size"),
    "shape": (array(shape=[True, 2]), "True is not a size"),
    "arrays": (changed(arrays=[]), "is damaged"),
    "nested": ("[" * 100_000, "is damaged"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_refused(case):
    text, words = DAMAGED[case]
    with pytest.raises(Damaged, match=f"its index .*{words}"):
        parse_index(text)


def test_what_is_removed_is_ours(tmp_path):
    path = tmp_path / "model"
    folder = folder_of(str(path))
    os.mkdir(folder)
    keep = data_name("f" * 16, 0)
    for name in (ONE, TWO, keep, "next", "notes.txt"):
        (tmp_path / "model.parts" / name).write_bytes(b"")
    remove_parts(folder, but="f" * 16)
    assert sorted(os.listdir(folder)) == [keep, "notes.txt"]
    os.unlink(os.path.join(folder, "notes.txt"))
    path.write_bytes(b"")
    remove(str(path))
    assert os.listdir(tmp_path) == []
    remove(str(path))
    remove_parts(folder)


def test_a_link_leads_to_the_folder_of_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert folder_of(str(tmp_path / "link")) == str(tmp_path / "model.parts")

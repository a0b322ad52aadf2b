"""Which folders nobody but the user and root can have changed, by the way that leads to them."""

import grp
import os
import pathlib
import pwd
import stat
import subprocess
import sys
from types import SimpleNamespace as Entry

import pytest

from stretto._engine.core import files, system
from stretto._engine.xla import store

OTHER, THIRD = 12345, 23456
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")


@pytest.fixture(autouse=True)
def unwalked(monkeypatch):
    """No way was walked before, as in a new process."""
    monkeypatch.setattr(files, "_SAFE", set())


@pytest.fixture
def way(tmp_path):
    """A folder, three below the test's own."""
    path = tmp_path / "one" / "two" / "three"
    path.mkdir(parents=True)
    return path


def refused(path, words):
    with pytest.raises(files.Unsafe, match=words) as caught:
        files.check_way(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("user", "mode", "words"),
    [
        (7, 0o644, None),
        (7, 0o755, None),
        (8, 0o600, "belongs to user 8, you are 7: remove it"),
        (0, 0o600, "belongs to user 0, you are 7"),
        (7, 0o664, "can be written by others, with mode 664"),
        (7, 0o646, "can be written by others, with mode 646"),
    ],
)
def test_a_file_of_the_users_own(monkeypatch, user, mode, words):
    status = Entry(st_uid=user, st_mode=stat.S_IFREG | mode)
    monkeypatch.setattr(system, "user", lambda: 7)
    if words is None:
        files.check_owned(status, "/some/file")
    else:
        with pytest.raises(files.Unsafe, match=f"^/some/file {words}"):
            files.check_owned(status, "/some/file")
    monkeypatch.setattr(system, "user", lambda: None)
    files.check_owned(status, "/some/file")


def test_what_is_the_users_own_is_safe(way):
    files.check_way(str(way))
    files.check_way(str(way / "not" / "there" / "yet"))
    files.check_way("/")


@needs_root
@pytest.mark.parametrize("up", [0, 1, 2])
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_a_folder_of_another_user_anywhere_on_the_way(way, up, mode):
    """Whoever owns a folder can rename what is in it, the sticky bit or not."""
    its = [way, *way.parents][up]
    its.chmod(mode)
    os.chown(its, OTHER, OTHER)
    said = refused(way, f"the way to {way} leads through {its}, a folder of user {OTHER}")
    assert "you are 0: have it belong to you or to root" in said
    # It is no better for what is not there yet.
    refused(way / "new", f"the way to {way / 'new'} leads through {its}, a folder of user {OTHER}")


@pytest.mark.parametrize("up", [0, 1, 2])
def test_a_folder_that_everybody_can_write(way, up):
    its = [way, *way.parents][up]
    its.chmod(0o757)
    refused(
        way, f"the way to {way} leads through {its}, which everybody can write to: chmod o-w {its}"
    )
    its.chmod(0o1777)  # there nobody renames what is another's
    files.check_way(str(way))


@needs_root
def test_a_folder_that_a_group_can_write(way):
    middle = way.parent
    middle.chmod(0o775)
    os.chown(middle, 0, THIRD)
    refused(way, f"users of group {THIRD} can write to: chmod g-w {middle}")
    middle.chmod(0o1775)
    files.check_way(str(way))


def test_the_group_that_is_a_users_own(monkeypatch):
    """As many systems make one for each user, with a mask that lets it write."""
    accounts = {1000: Entry(pw_gid=1000, pw_name="ada"), 1001: Entry(pw_gid=100, pw_name="bob")}
    groups = {
        1000: Entry(gr_name="ada", gr_mem=[]),
        100: Entry(gr_name="users", gr_mem=[]),
        7: Entry(gr_name="ada", gr_mem=["bob"]),
    }
    monkeypatch.setattr(pwd, "getpwuid", accounts.__getitem__)
    monkeypatch.setattr(grp, "getgrgid", groups.__getitem__)
    alone = system.is_alone.__wrapped__
    assert alone(1000, 1000)
    assert not alone(100, 1001) and not alone(100, 1000) and not alone(7, 1000)
    assert not alone(1000, 1001) and not alone(55, 1000) and not alone(1000, 55)
    groups[1000].gr_mem = ["ada"]
    assert alone(1000, 1000)
    groups[1000].gr_mem = ["ada", "eve"]
    assert not alone(1000, 1000)


def test_a_private_group_may_write_unless_a_list_names_others(way, monkeypatch):
    way.parent.chmod(0o775)
    monkeypatch.setattr(system, "is_alone", lambda group, user: True)
    files.check_way(str(way))
    files._SAFE.clear()
    named = lambda path: ["system.posix_acl_access"] if path == str(way.parent) else []
    monkeypatch.setattr(os, "listxattr", named, raising=False)
    refused(way, f"chmod g-w {way.parent}")


@needs_root
def test_links_and_the_folders_that_they_lead_through(way, tmp_path):
    """The folder is the user's own, and so is each that one sees; the link goes round."""
    others = tmp_path / "others"
    others.mkdir()
    (others / "door").symlink_to(way)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "in").symlink_to("../others/door")  # relative, and then absolute
    files.check_way(str(mine / "in"))
    files._SAFE.clear()
    os.chown(others, OTHER, OTHER)
    refused(
        mine / "in", f"the way to {mine / 'in'} leads through {others}, a folder of user {OTHER}"
    )
    refused(mine / "in" / "new", f"leads through {others}")
    os.chown(others, 0, 0)
    os.chown(others / "door", OTHER, OTHER, follow_symlinks=False)
    refused(mine / "in", f"leads through {others / 'door'}, a link of user {OTHER}")
    others.chmod(0o1777)  # where whoever owns a link replaces it
    refused(mine / "in", f"leads through {others / 'door'}, a link of user {OTHER}")


def test_links_that_lead_round(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    refused(tmp_path / "a", "through more than 40 links")


@needs_root
@pytest.mark.parametrize(("links", "is_safe"), [(39, True), (40, True), (41, False)])
def test_how_many_links_are_followed(way, links, is_safe):
    last = way
    for k in range(links):
        link = way / f"link{k}"
        link.symlink_to(last)
        last = link
    if is_safe:
        files.check_way(str(last))
    else:
        refused(last, "through more than 40 links: shorten it")


@needs_root
def test_ways_up_are_walked_as_they_are(way, tmp_path):
    """``..`` after a link is above where the link leads."""
    target = tmp_path / "target" / "deep"
    target.mkdir(parents=True)
    (way / "link").symlink_to(target)
    (tmp_path / "again").symlink_to(way / "link" / ".." / ".." / "one")
    files.check_way(str(tmp_path / "again"))
    files._SAFE.clear()
    os.chown(tmp_path / "target", OTHER, OTHER)
    refused(tmp_path / "again", f"leads through {tmp_path / 'target'}")


def test_a_way_is_walked_once(way, monkeypatch):
    looked = []
    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: looked.append(path) or lstat(path))
    files.check_way(str(way))
    first = len(looked)
    assert first == len(way.parts)
    files.check_way(str(way))
    assert len(looked) == first
    files.check_way(str(way / "new"))  # not there, so it is looked for again
    files.check_way(str(way / "new"))
    assert len(looked) == first + 2 * (first + 1)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert (str(way), os.geteuid()) not in files._SAFE  # another user finds out anew


@needs_root
def test_nothing_is_made_read_or_cleared_below_another_users_folder(way):
    folder, key = str(way / "caches" / "programs"), "ab" * 32
    store.write(folder, key, b"x", 1 << 20)
    files._SAFE.clear()
    os.chown(way.parent, OTHER, OTHER)
    for use in (
        lambda: store.read(folder, key, 1 << 20),
        lambda: store.write(folder, key, b"y", 1 << 20),
        lambda: store.list_kept(folder),
        lambda: store.clear(folder),
        lambda: store.write(str(way / "new" / "programs"), key, b"y", 1 << 20),
    ):
        with pytest.raises(store.Unsafe, match=f"a folder of user {OTHER}"):
            use()
    assert not (way / "new").exists()


@needs_root
def test_the_cache_is_off_below_another_users_folder_and_says_so(way):
    """A program that this user keeps, in a folder that another moved away and put his own for."""
    code = (
        "import stretto as st, stretto.numpy as snp, logging\n"
        "for n in range(3):\n"
        "    print(float(st.jit(lambda x: x @ x + n)(snp.ones((4, 4)))[0, 0]))\n"
    )
    os.chown(way.parent, OTHER, OTHER)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "STRETTO_CACHE_DIR": str(way / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["4.0", "5.0", "6.0"]
    assert ran.stderr.count("compiled programs on disk are used where only you") == 1
    assert f"leads through {way.parent}, a folder of user {OTHER}" in ran.stderr
    assert "or set STRETTO_CACHE_DIR to a folder that only you can write" in ran.stderr
    assert not pathlib.Path(way / "cache").exists()

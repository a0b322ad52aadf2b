"""The command line: what is wrong is said in one line on standard error, with status 2."""

import re

from stretto import cli


def outcome(capsys, *argv):
    """The exit status, and the one line on standard error."""
    status = cli.main(argv)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"[^\n]+\n", err)
    return status, err


def test_interruption(capsys, monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("stretto.demo.comparison.run", interrupt)
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

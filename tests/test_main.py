"""``python -m stretto`` does what the command ``stretto`` does; ``stretto info``."""

import subprocess
import sys

import stretto as st
from stretto import cli


def ran(*arguments):
    command = [sys.executable, "-m", "stretto", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_info_and_errors(capsys):
    done = ran("--version")
    assert (done.returncode, done.stdout) == (0, f"stretto {st.__version__}\n")
    done = ran("dmeo")
    assert done.returncode == 2 and done.stderr.startswith("stretto: argument COMMAND: invalid")
    done = ran("info")
    assert cli.main(["info"]) == done.returncode == 0
    assert capsys.readouterr().out.splitlines()[:4] == done.stdout.splitlines()[:4]


def test_info_takes_no_arguments(capsys):
    assert cli.main(["info", "--all"]) == 2
    assert "unrecognized arguments: --all" in capsys.readouterr().err

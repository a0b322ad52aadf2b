"""The demo's options: what is wrong with one is said with its name."""

import pytest

from tests.test_cli import outcome


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

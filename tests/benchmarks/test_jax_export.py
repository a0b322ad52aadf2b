"""JAX's own tests of ``jax.export``: the reasons for those that fail, and what the command says."""

import json

import pytest

from benchmarks.ecosystem.suites import Outcome, compared
from benchmarks.jax_export import __main__ as command


def test_failures_are_counted_by_reason():
    outcome = Outcome(1, 0, dict.fromkeys(["t::a", "t::b_1", "t::b_2", "t::c"], "t.py"))
    known = {"t::a": "one", "t::b_*": "two"}
    assert command.reasons(outcome, known) == {"two": ["t::b_1", "t::b_2"], "one": ["t::a"]}


def test_each_test_in_the_table_has_one_reason():
    known = json.loads(command.EXCEPTIONS.read_text("utf-8"))
    assert [*known] == sorted(known) and all(known.values())
    for name in known:
        others = {other: "" for other in known if other != name}
        assert compared(Outcome(0, 0, {name: ""}), others)[0] == [name]


@pytest.mark.parametrize(("failed", "status"), [({}, 0), ({"t::new": "t.py"}, 1)])
def test_a_failure_that_is_not_known(failed, status, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "_run", lambda file: Outcome(3, 2, failed))
    file = tmp_path / "export_test.py"
    file.write_text("")
    assert command.main([str(file)]) == status
    said = capsys.readouterr().out
    assert f"3 of {3 + status} tests pass, {status} fail, and 2 skip themselves" in said
    assert ("failed, and is not in exceptions.json: t::new" in said) == bool(status)


def test_a_file_that_is_not_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command.main([str(tmp_path / "none.py")])
    assert "there is no file" in capsys.readouterr().err

"""Runs beside the last ones: what counts as slower, what is not compared, and what is kept."""

from __future__ import annotations

import json

import pytest

from benchmarks import history

MACHINE = {"cpu": "one", "cores": 2}
ANOTHER = {"cpu": "another", "cores": 2}


def report(moment="2026-01-02T03:04:05+00:00", machine=MACHINE, jax="0.10.2", **rows):
    """A report with the rounds of each row's contestants."""
    names = {name for contestants in rows.values() for name in contestants}
    versions = {"stretto": "0.1.0", "jax": jax, "torch": "2.13.0"}
    return {
        "measured_at": moment,
        "machine": machine,
        "frameworks": {name.split()[0]: {"versions": versions} for name in names | {"stretto"}},
        "benchmarks": [
            {
                "name": name,
                "contestants": {
                    caller: {"rounds": rounds} for caller, rounds in contestants.items()
                },
            }
            for name, contestants in rows.items()
        ],
    }


def only(now, *earlier):
    """The change of the only row."""
    (change,) = history.compare(now, earlier)
    return change


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        # Then it was 1 of jax in each round but one.
        ([1.2, 1.2, 1.2, 1.2], "slower"),
        ([1.08, 1.08, 1.08, 1.08], "as before"),  # beyond the noise, within a tenth
        ([0.9, 1.2, 1.2, 1.2], "as before"),  # beyond a tenth, within the noise
        ([0.8, 0.8, 0.8, 0.8], "faster"),
    ],
    ids=["much", "little", "noisy", "less"],
)
def test_what_moved_by_more_than_the_noise_and_a_tenth_is_named(ours, verdict):
    before = report(row={"stretto": [1.0, 1.0, 1.0, 1.7], "jax": [1.0] * 4})
    now = report(row={"stretto": ours, "jax": [1.0] * 4})
    change = only(now, before)
    assert change.verdict == verdict
    assert change.peer == "jax"


def test_a_slow_machine_slows_all_and_moves_nothing():
    before = report(row={"stretto": [1.0] * 3, "jax": [2.0] * 3})
    now = report(row={"stretto": [5.0] * 3, "jax": [10.0] * 3})
    assert only(now, before).verdict == "as before"


@pytest.mark.parametrize(
    ("now", "verdict", "peer"),
    [
        # Of these times, jax's and torch's were 1 then.
        ({"jax": 0.5, "torch": 1.0}, "as before", "jax"),
        ({"jax": 0.5, "torch": 0.4}, "slower", "torch"),
        ({"jax": 0.5, "torch": 9.0}, "as before", "jax"),
        ({"jax": 0.5, "jax loop": 9.0}, "slower", "jax"),
    ],
    ids=["one of two", "two of two", "one each way", "one of one"],
)
def test_most_of_the_peers_of_both_runs_decide(now, verdict, peer):
    before = report(row={"stretto": [1.0] * 3, "jax": [1.0] * 3, "torch": [1.0] * 3})
    times = {name: [seconds] * 3 for name, seconds in now.items()}
    change = only(report(row={"stretto": [1.0] * 3, **times}), before)
    assert (change.verdict, change.peer) == (verdict, peer)


def test_each_row_is_compared_with_the_last_run_that_has_it():
    old = report("2026-01-01T00:00:00+00:00", a={"stretto": [1.0] * 3}, b={"stretto": [1.0] * 3})
    partial = report("2026-01-02T00:00:00+00:00", a={"stretto": [2.0] * 3})
    now = report(a={"stretto": [2.0] * 3}, b={"stretto": [2.0] * 3}, c={"stretto": [1.0] * 3})
    a, b, c = history.compare(now, [partial, old])
    assert (a.verdict, a.since) == ("as before", partial["measured_at"])
    assert (b.verdict, b.since) == ("slower", old["measured_at"])
    assert (c.verdict, c.because) == ("not compared", "no earlier run has the row")


def test_another_machine_is_named_and_only_ratios_are_compared():
    alone, both = {"stretto": [1.0] * 3}, {"stretto": [1.0] * 3, "jax": [1.0] * 3}
    before = report(machine=ANOTHER, jax="0.9.0", alone=alone, both=both)
    changes = history.compare(report(alone=alone, both=both), [before])
    assert [one.verdict for one in changes] == ["not compared", "as before"]
    assert changes[0].because == "no peer is in both runs, and on another machine"
    assert changes[1].because == "on another machine, with jax 0.9.0"


def test_a_row_that_was_not_measured_is_not_compared():
    assert only(report(row={}), report(row={"stretto": [1.0]})).verdict == "not compared"


def test_in_words_and_as_json():
    before = report(
        slow={"stretto": [1.0] * 3, "jax": [2.0] * 3},
        fast={"stretto": [0.004] * 3},
        still={"stretto": [1.0] * 3},
    )
    now = report(
        slow={"stretto": [1.5] * 3, "jax": [2.0] * 3},
        fast={"stretto": [0.002] * 3},
        still={"stretto": [1.0] * 3},
        new={"stretto": [1.0] * 3},
    )
    changes = history.compare(now, [before])
    since = "2026-01-02T03:04:05+00:00"
    assert history.as_lines(changes) == [
        f"slower: slow: 0.5 → 0.75 of jax (since {since})",
        f"faster: fast: 4 → 2 ms (since {since})",
        f"as before, within a tenth or the noise: 1 row (since {since})",
        "not compared: 1 row: no earlier run has the row",
    ]
    found = json.loads(json.dumps(history.as_json(changes)))
    assert (found["slower"], found["faster"]) == (["slow"], ["fast"])
    assert found["rows"]["slow"]["now"] == {"low": 0.75, "middle": 0.75, "high": 0.75}
    assert found["rows"]["new"]["before"] is None


def test_runs_are_kept_beside_the_file_and_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "KEPT", 2)
    for day in (3, 1, 2):
        history.keep(report(f"2026-01-0{day}T00:00:00+00:00"), tmp_path / "latest.json")
    history.keep(report("2026-01-09T00:00:00+00:00"), tmp_path / "latest-other.json")
    days = [run["measured_at"][:10] for run in history.earlier_runs(tmp_path / "latest.json")]
    assert days == ["2026-01-03", "2026-01-02"]
    assert history.earlier_runs(tmp_path / "none.json") == []

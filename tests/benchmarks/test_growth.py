"""The picture of the growth: what is drawn, and the command, with NumPy alone."""

from __future__ import annotations

import json

import pytest

from benchmarks.growth import draw, main


def entry(members, **contestants):
    return {"name": f"growth-small-n{members}-forward-own", "contestants": contestants}


def test_a_curve_for_each_contestant_that_has_figures():
    stretto, unknown = {"median": 2e-5, "peak_bytes": 2**20}, {"median": 1e-5, "peak_bytes": None}
    too_small = {"median": 1e-5, "peak_bytes": 4096}
    figure = draw(
        [entry(1, stretto=stretto, jax=unknown), entry(10, stretto=stretto, jax=too_small)]
    )
    above, below = figure.axes
    assert [line.get_label() for line in above.lines] == ["stretto", "jax"]
    # Microseconds for each member, and MB of the whole call.
    assert list(above.lines[0].get_xdata()) == [1, 10]
    assert list(above.lines[0].get_ydata()) == pytest.approx([20, 2])
    assert [line.get_label() for line in below.lines] == ["stretto"]
    assert list(below.lines[0].get_ydata()) == [1, 1]


def test_the_command_draws_and_writes(tmp_path, capsys):
    file = tmp_path / "growth.json"
    only = "growth-small-n1-forward-own,growth-small-n3-forward-own"
    options = ["--check", "--frameworks", "numpy", "--only", only, "--json", str(file)]
    assert main(options) == 0
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads(file.read_text())["benchmarks"]) == 2
    assert "growth.png" in capsys.readouterr().out

"""The tables and the picture for the page, from several runs."""

from __future__ import annotations

import json
import shutil

import pytest

from benchmarks import picture, publish
from benchmarks.catalogue import TABLES, WORKLOADS
from benchmarks.layers.catalogue import TASKS
from benchmarks.outcomes import outcomes, spread
from benchmarks.publish import (
    PAGE,
    filled,
    main,
    sections,
    sections_of_layers,
    sections_of_models,
    sections_of_shapes,
)

KEPT = {
    "made_with": {"python": "3.11", "valgrind": "3.19"},
    "revision": "abc",
    "titles": {"import": "import of the package", "eager-add": "eager add"},
    "counts": {
        "import": {"instructions": 480148493.0, "held": 95558.0},
        "eager-add": {"instructions": 6386.0, "held": 2.0, "garbage": 0.0, "peak": 256.0},
    },
}


def run(scale=1.0, rounds=5, **rows):
    """A report with so many seconds for each contestant of each row."""
    names = ("stretto", "jax", "torch", "numpy")
    return {
        "measured_at": "2026-01-02T03:04:05+00:00",
        "revision": "abc+",
        "rounds": rounds,
        "machine": {"cpu": "EPYC", "cores": 2},
        "frameworks": {name: {"versions": {name: "1.0"}, "python": "3.11.9"} for name in names},
        "benchmarks": [
            {
                "name": name,
                "contestants": {
                    caller: {
                        "rounds": [seconds * (scale if caller == "stretto" else 1.0)] * rounds,
                        "peak_bytes": 2**20,
                    }
                    for caller, seconds in contestants.items()
                },
            }
            for name, contestants in rows.items()
        ],
    }


ROWS = {
    "eager-add": {"stretto": 1e-6, "jax": 1e-5, "numpy": 2.5e-7},
    "product": {"stretto": 2e-2, "jax": 1e-2},
    "mlp-n10-b1-forward-same": {"stretto": 2e-3, "jax": 1e-3, "jax lax.map": 5e-3, "torch": 4e-3},
    "a-row-of-old": {"stretto": 1.0, "jax": 1.0},
}


def test_of_one_run_the_spread_is_of_its_rounds_of_several_it_is_theirs():
    one = run(**{"jitted-affine": {"stretto": 1.0, "jax": 1.0}})
    one["benchmarks"][0]["contestants"]["stretto"]["rounds"] = [1.0, 2.0, 3.0, 4.0, 5.0]
    (found,) = outcomes([one])
    assert (found.low, found.ratio, found.high, found.met) == (2.0, 3.0, 4.0, False)
    runs = [run(scale, **{"jitted-affine": {"stretto": 0.1, "jax": 1.0}}) for scale in (2, 9, 4)]
    (found,) = outcomes(runs)
    assert (found.low, found.ratio, found.high) == pytest.approx((0.2, 0.4, 0.9))
    assert found.met


def test_tables():
    texts = sections([run(scale, **ROWS) for scale in (1.0, 1.1, 1.4)], KEPT)
    assert "2026-01-02 03:04 (abc+)" in texts["runs"]
    rows = len(TABLES["Overheads"])
    assert texts["overheads"].splitlines()[0] == (
        "1 of 2 goals are met, by medians of 3 runs or more. "
        f"{rows - 2} rows of this table were not measured in these runs."
    )
    assert (
        "| eager add, 4 floats | 1.10 µs | 10.0 µs |  | 0.25 µs "
        "| 0.11 (0.10 to 0.14) / 4.40 (4.00 to 5.60) "
        "| ≤ 0.15 of jax: met / ≤ 3 of numpy: **missed** |"
    ) in texts["overheads"]
    (line,) = [line for line in texts["ensembles"].splitlines() if line.startswith("| MLP")]
    title = WORKLOADS["mlp-n10-b1-forward-same"].title
    cells = [title, "2,200 µs", "**1,000 µs**", "5,000 µs", "", "", "4,000 µs", "", ""]
    assert [cell.strip() for cell in line.split("|")[1:10]] == cells
    assert "| ≤ 1.05 of fastest: **missed** |" in line
    assert line.endswith("| 1.0 MB | 1.0 MB |")
    assert "| eager add | 6,386 | 2 | 0 | 256 |" in texts["counts"]
    assert "| import of the package | 480,148,493 | 95,558 |  |  |" in texts["counts"]


def test_tables_of_models():
    assert sections_of_models([]) == {}
    rows = {
        "lstm-n1-step": {"stretto": 0.05, "jax": 0.1, "torch": 0.08, "torch compile": 0.04},
        "lstm-n5-step": {"stretto": 0.3, "torch loop": 0.4},
        "lstm-n1-step-first": {"stretto": 1.0, "jax": 4.0},
        "lstm-n1-step-compile": {"stretto": 0.9, "jax": 3.0},
    }
    texts = sections_of_models([run(**rows)])
    (line,) = [line for line in texts["models"].splitlines() if line.startswith("| LSTM")]
    assert "| 50.0 ms | 100 ms | 80.0 ms | **40.0 ms** | 1.25 (1.25 to 1.25) |" in line
    assert line.endswith("| ≤ 1.1 of fastest: **missed** | 1.0 MB | 1.0 MB |")
    assert "N=5: step | 300 ms |" in texts["models-several"]
    (line,) = [line for line in texts["models-first"].splitlines() if line.startswith("| LSTM")]
    assert line.endswith("| 0.25 (0.25 to 0.25) | ≤ 0.5 of jax: met |")
    assert "Not final" in texts["models-first"]
    alone = sections_of_models([run(**{"lstm-n1-step": rows["lstm-n1-step"]})])
    assert alone.keys() == {"models-runs", "models"}


def test_tables_of_shapes():
    assert sections_of_shapes([]) == {}
    rows = {
        "sizes-cube-first": {"stretto": 0.1, "jax": 10.0, "torch": 0.01},
        "sizes-cube-warm": {"stretto": 0.06, "stretto full": 0.05, "jax": 0.01},
        "ragged-lstm-skewed-forward": {
            "stretto": 0.002, "stretto longest": 0.001, "jax": 0.004, "torch packed": 0.003
        },
    }  # fmt: skip
    texts = sections_of_shapes([run(**rows)] * 3)
    first, warm = texts["shapes-sizes"].splitlines()[-2:]
    assert first.endswith("| 0.01 (0.01 to 0.01) | ≤ 0.02 of jax: met |")
    assert "| 60.0 ms | 50.0 ms | 10.0 ms |" in warm
    assert warm.endswith("| 1.20 (1.20 to 1.20) | ≤ 1.3 of stretto full: met |")
    (line,) = [one for one in texts["shapes-ragged"].splitlines() if one.startswith("| LSTM")]
    assert "| 2,000 µs | 1,000 µs | 4,000 µs |  |  |  |  | **3,000 µs** | 0.67" in line


def test_tables_of_layers():
    assert sections_of_layers([]) == {}
    fast, slow, *_ = [name for name in TASKS if name.endswith("-forward")]
    gradient = next(name for name in TASKS if name.endswith("-gradient"))
    rows = {
        fast: {"stretto": 1.0, "jax": 2.0, "torch": 4.0},
        slow: {"stretto": 2.0, "jax": 1.0, "torch": 4.0},
        gradient: {"stretto": 1.3, "torch": 1.0},
    }
    text = sections_of_layers([run(scale, **rows) for scale in (1.0, 1.0, 1.2)])["layers"]
    assert "- forward: 2 rows, geometric mean 1.00; 1 above 1.5, 1 above 1.2." in text
    assert "- gradient: 1 rows, geometric mean 1.30; 0 above 1.5, 1 above 1.2." in text
    title, _, inputs = TASKS[slow].workload.title.partition(", ")
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {title}")]
    assert f"| {title}, forward | {inputs} |" in line
    assert line.endswith("| 2.00 (2.00 to 2.40) |")
    assert "Not final" not in text
    alone = sections_of_layers([run(**rows)])["layers"]
    assert "Not final" in alone


def test_the_spread_of_one_run_is_of_its_rounds():
    assert spread([]) is spread([[]]) is None
    assert spread([[1.0, 2.0, 3.0, 4.0, 5.0]]) == (2.0, 3.0, 4.0)
    assert spread([[1.0, 9.0, 3.0], [2.0], []]) == (2.0, 2.5, 3.0)


def test_what_is_not_final_says_so():
    whole = {name: {"stretto": 1.0, "jax": 1.0} for name in WORKLOADS}
    assert not any("Not final" in text for text in sections([run(**whole)] * 3, None).values())
    few = sections([run(rounds=3, **whole)] * 2, None)
    assert few["runs"].startswith("**Not final: fewer than 5 rounds.**")
    overheads = {name: one for name, one in whole.items() if not WORKLOADS[name].shows_memory}
    some = sections([run(**whole), run(**whole), run(**overheads)], None)
    assert "by medians of 3 runs or more.\n" in some["overheads"]
    assert "by medians of 2 runs or more. **Not final" in some["ensembles"]
    other = run(**whole)
    other["frameworks"]["jax"]["versions"] = {"jax": "2.0"}
    mixed = sections([run(**whole), run(**whole), other], None)["runs"]
    assert "Not final: runs of different versions" in mixed


def elsewhere(report):
    report["machine"] = {"cpu": "EPYC, 512-bit vectors", "cores": 8}
    return report


def test_each_machine_has_a_ratio_of_its_own():
    here = [run(scale, **ROWS) for scale in (1.0, 1.1, 1.2)]
    there = [elsewhere(run(scale, **ROWS)) for scale in (2.0, 2.2)]
    texts = sections([*here, *there], None)
    assert "- Runs on EPYC, 2 cores: " in texts["runs"]
    assert "- Runs on EPYC, 512-bit vectors, 8 cores: " in texts["runs"]
    summary, _, headings, _, line = texts["overheads"].splitlines()[:5]
    assert "EPYC, 2 cores: 1 of 2 goals are met, by medians of 3 runs or more. " in summary
    assert "8 cores: 0 of 2 goals are met, by medians of 2 runs or more. **Not final" in summary
    assert headings.endswith(
        "| ratio, EPYC, 2 cores | goal, EPYC, 2 cores | ratio, 512-bit | goal, 512-bit | of peak |"
    )
    assert "| eager add, 4 floats | 1.10 µs | 10.0 µs |" in line  # the first machine's times
    assert "0.11 (0.10 to 0.12)" in line and "0.21 (0.20 to 0.22)" in line


def test_a_table_without_a_run_is_refused():
    row = {"eager-add": ROWS["eager-add"]}
    with pytest.raises(ValueError, match="expected runs with rows of a table, as "):
        sections([run(**row)], None)
    with pytest.raises(ValueError, match="expected runs with rows of a table, as sizes-"):
        sections_of_shapes([run(**row)])
    with pytest.raises(ValueError, match="expected runs with rows of layers"):
        sections_of_layers([run(**row)])
    with pytest.raises(ValueError, match="expected layers of one machine, got EPYC, 2 cores; "):
        sections_of_layers([run(), elsewhere(run())])
    with pytest.raises(ValueError, match="expected runs with rows of a table, as "):
        sections_of_models([run(**row)])


def test_text_goes_between_its_markers_and_nowhere_else():
    page = "a\n<!-- runs -->\nold\n<!-- /runs -->\nb\n"
    assert filled(page, {"runs": r"new \1"}) == "a\n<!-- runs -->\nnew \\1\n<!-- /runs -->\nb\n"
    with pytest.raises(ValueError, match="expected <!-- counts -->"):
        filled(page, {"counts": "new"})


def test_the_command_fills_the_page_and_draws(tmp_path, capsys):
    """The page in docs has all the markers."""
    page, file, kept = (tmp_path / name for name in ("page.md", "run.json", "counts.json"))
    shutil.copy(PAGE, page)
    file.write_text(json.dumps(run(**ROWS)))
    kept.write_text(json.dumps(KEPT))
    options = [str(file), "--page", str(page), "--counts", str(kept)]
    assert main([*options, "--picture", str(tmp_path / "new" / "picture.png")]) == 0
    assert "| eager add, 4 floats | 1.00 µs |" in page.read_text()
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "Written to" in capsys.readouterr().out
    file.write_text(json.dumps(run(**{"lstm-n1-step": {"stretto": 0.05, "jax": 0.1}})))
    layer = next(iter(TASKS))
    (tmp_path / "layers.json").write_text(json.dumps(run(**{layer: {"stretto": 1.0, "jax": 1.0}})))
    options = ["--models", str(file), "--layers", str(tmp_path / "layers.json")]
    assert main([*options, "--page", str(page), "--picture", str(tmp_path / "none.png")]) == 0
    assert "| 50.0 ms | **100 ms** |" in page.read_text()
    assert "rows, geometric mean 1.00" in page.read_text()
    assert "| eager add, 4 floats | 1.00 µs |" in page.read_text()
    assert not (tmp_path / "none.png").exists()


def test_a_page_without_markers_is_refused(tmp_path, capsys):
    page, file = tmp_path / "page.md", tmp_path / "run.json"
    page.write_text("nothing\n")
    file.write_text(json.dumps(run(**ROWS)))
    with pytest.raises(SystemExit):
        publish.main([str(file), "--page", str(page), "--picture", str(tmp_path / "p.png")])
    assert "expected <!-- runs -->" in capsys.readouterr().err


def test_the_picture_tells_met_from_missed_by_shape_as_well():
    figure = picture.draw(outcomes([run(**ROWS)]))
    overheads, ensembles = figure.axes
    assert overheads.get_title() == "Overheads: 1 of 2 goals met"
    assert ensembles.get_title() == "Ensembles: 0 of 1 goals met"
    labels = [label.get_text() for label in overheads.get_yticklabels()]
    assert labels == ["eager add, 4 floats ÷ jax", "eager add, 4 floats ÷ numpy"]
    met, missed, goal = (
        next(line for line in overheads.get_lines() if line.get_marker() == marker)
        for marker in ("o", "D", "|")
    )
    assert list(met.get_xdata()) == pytest.approx([0.1])
    assert list(missed.get_xdata()) == pytest.approx([4.0])
    assert list(goal.get_xdata()) == [0.15, 3.0]
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"goal met", "goal missed", "goal"}


def test_the_picture_has_machines_beside_each_other():
    figure = picture.draw(outcomes([run(**ROWS), elsewhere(run(2.0, **ROWS))]))
    overheads, _ = figure.axes
    assert overheads.get_title() == "Overheads: 1 of 2 goals met / 0 of 2 goals met"
    labels = [label.get_text() for label in overheads.get_yticklabels()]
    assert labels == ["eager add, 4 floats ÷ jax", "eager add, 4 floats ÷ numpy"]
    marks = {
        (line.get_marker(), line.get_fillstyle()): list(line.get_ydata())
        for line in overheads.get_lines()
    }
    assert marks["o", "full"] == [-0.25] and marks["D", "full"] == [0.75]
    assert marks["D", "none"] == [0.25, 1.25]
    (legend,) = figure.legends
    assert "goal missed, EPYC, 512-bit vectors, 8 cores" in {
        text.get_text() for text in legend.get_texts()
    }


def test_a_picture_of_nothing_is_empty():
    assert picture.draw([]).axes == []

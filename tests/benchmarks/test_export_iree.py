"""The exchange with IREE: what is written for it, and what is said of what it gives."""

import re
import sys

import numpy as np
import pytest

import stretto as st
from benchmarks.export_iree import __main__ as command
from benchmarks.export_iree.models import MODELS, training_step

SIDE = """
import os, sys
folder, names = sys.argv[1], sys.argv[2:]
for name in names:
    if name == "bad":
        os.abort()
    print(name, "ok", sep="\\t", flush=True)
"""


def test_what_is_written_is_given_in_the_order_of_the_modules_inputs(tmp_path):
    case = training_step()
    outs = command.write(tmp_path, "step", *case)
    with np.load(tmp_path / "step.npz") as archive:
        inputs = [archive[f"in{k}"] for k in range(len(archive.files))]
    file = st.export.stablehlo(case.fun, *case.examples)
    assert [x.shape for x in inputs] == [t.shape for t in file.inputs.values()]
    want = case.fun(*case.examples)
    found = dict(zip(file.outputs, outs, strict=True))
    np.testing.assert_allclose(found["loss"], want["loss"], rtol=1e-5)
    assert (tmp_path / "step.mlirbc").read_bytes()[:4] == b"ML\xefR"


def test_a_file_that_ends_the_process_does_not_end_the_rest(tmp_path, monkeypatch):
    side = tmp_path / "side.py"
    side.write_text(SIDE)
    monkeypatch.setattr(command, "SIDE", side)
    found = dict(command.run(sys.executable, tmp_path, ["a", "bad", "c"]))
    assert found == {"a": "ok", "bad": "run: it ended the process, with status -6", "c": "ok"}


@pytest.mark.parametrize(
    ("outs", "words"),
    [
        ([np.ones(3, np.float32)], "agrees"),
        ([np.full(3, 1.001, np.float32)], "differs: .*Not equal to tolerance"),
        ([np.ones(2, np.float32)], "differs: .*shape"),
        ([np.ones(3, np.float32)] * 2, "differs: 2 results of 1"),
    ],
)
def test_what_differs(outs, words, tmp_path):
    np.savez(tmp_path / "f.out.npz", **{f"out{k}": x for k, x in enumerate(outs)})
    said = command.outcome_of(tmp_path, "f", command.Written([np.ones(3, np.float32)], 1.0))
    assert re.search(words, said, re.DOTALL)


def test_calls_of_the_table_are_written(tmp_path):
    written = dict(command.functions(tmp_path, "numpy.sinc", 1))
    assert [*written] == ["numpy_sinc-1"] and (tmp_path / "numpy_sinc-1.mlirbc").exists()


def test_the_models_have_names_that_files_may_have():
    assert all([name.replace("-", "").isalnum() for name in MODELS])

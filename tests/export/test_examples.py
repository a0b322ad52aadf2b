"""The examples of export write files that give, in onnxruntime, the numbers written beside them."""

import json

import numpy as np
import pytest

from examples.export_browser import export_model as in_browser
from examples.export_service import export_model as in_service
from tests.export.running import session

pytest.importorskip("sklearn")


@pytest.mark.parametrize(
    "example, given, name, files",
    [
        (in_browser, "images", "images", ["check.mjs", "index.html", "package.json", "page.mjs"]),
        (in_service, "X", "X", ["model-settings.json", "runtime.py", "settings.json"]),
    ],
)
def test_what_an_example_exports_gives_what_it_expects(example, given, name, files, tmp_path):
    folder = tmp_path / "made"
    example.main(folder)
    written = sorted(path.name for path in folder.iterdir())
    assert written == sorted([*files, "cases.json", "digits.onnx"])
    cases = json.loads((folder / "cases.json").read_text("utf-8"))
    running = session(folder / "digits.onnx")
    (taken,) = running.get_inputs()
    assert taken.name == name
    dtype = {"tensor(uint8)": np.uint8, "tensor(float)": np.float32}[taken.type]
    names = [output.name for output in running.get_outputs()]
    assert set(names) == set(cases["expected"])
    for rows in (1, len(cases[given])):
        results = running.run(names, {name: np.array(cases[given][:rows], dtype)})
        for got, output in zip(results, names, strict=True):
            want = np.array(cases["expected"][output])
            # The members of the page come first, the rows of the service do.
            want = want[:, :rows] if example is in_browser and want.ndim == 3 else want[:rows]
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

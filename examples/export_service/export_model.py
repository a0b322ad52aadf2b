"""A service: an ensemble as one ONNX file, in the folder that an inference server is given.

``make export-service`` runs this, then ``check.py`` in an environment that has no Stretto:
MLServer, which speaks the open inference protocol (v2) and joins waiting requests into batches;
onnxruntime; and Triton's client of the same protocol. ``docs/export.md`` says what was measured.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import EnsembleClassifier

HERE = Path(__file__).parent

# The server cuts a batch's results apart along their first axis, so rows come first in each; and it
# gives results of one axis a second, so that they have two here.
OUTPUTS = {
    "probabilities": lambda of: of["probabilities"],
    "disagreement": lambda of: of["disagreement"][:, None],
    "members": lambda of: snp.moveaxis(of["members"], 0, 1),
}


def main(folder: Path) -> None:
    """Train ten classifiers of digits, and write the server's folder, and what to expect of it."""
    x, y = load_digits(return_X_y=True)
    x, x_test, y, _ = train_test_split(x.astype(np.float32), y, test_size=400, random_state=0)
    x, x_held, y, y_held = train_test_split(x, y, test_size=200, random_state=0)
    model = EnsembleClassifier(10, hidden=(64,), epochs=20, random_state=0)
    predict = model.fit(x, y).calibrate(x_held, y_held).function()

    folder.mkdir(parents=True, exist_ok=True)
    st.export.onnx(
        predict,
        x_test[:2],
        dynamic_axes=({0: "rows"},),
        outputs=OUTPUTS,
        path=folder / "digits.onnx",
    )
    for name in ("model-settings.json", "settings.json", "runtime.py"):
        shutil.copy(HERE / name, folder)
    results = predict(x_test)
    expected = {name: np.asarray(of(results)).tolist() for name, of in OUTPUTS.items()}
    cases = {"X": x_test.tolist(), "expected": expected}
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    print(f"{folder}: {(folder / 'digits.onnx').stat().st_size:,} bytes of model")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

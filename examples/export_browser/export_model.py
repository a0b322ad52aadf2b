"""In a browser: the demo's ensemble of digits, run by onnxruntime-web on the visitor's machine.

``make export-browser`` runs this, fetches onnxruntime-web, and has ``check.mjs`` open the page in a
headless browser and compare its numbers with those of Python. To look at the page:
``python -m http.server --directory build/export-browser``.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.demo import training
from stretto.demo.data import digits

HERE = Path(__file__).parent
SHOWN = 60

OUTPUTS = {
    "members": lambda probs: probs,
    "mean": st.ensemble.mean,
    "disagreement": st.ensemble.mutual_information,
}


def main(folder: Path) -> None:
    """Train the demo's members, and write the model, its page, and what to expect of it."""
    data = digits()
    recipe = data.recipe
    plan = training.Plan(10, recipe.draws, 20, recipe.batch, recipe.rates, seed=0)
    trained = training.train(data, plan, lambda done, losses: None)
    ensemble = st.Ensemble(training.probabilities, trained.members.params, stacked=True)
    doubt = st.ensemble.mutual_information(ensemble(snp.asarray(data.test.images)))
    most = np.argsort(-np.asarray(doubt))[: SHOWN // 2]
    chosen = np.stack([np.arange(SHOWN // 2), most], 1).ravel()  # any, and the most doubtful
    images, labels = data.test.images[chosen], data.test.labels[chosen]

    folder.mkdir(parents=True, exist_ok=True)
    st.export.onnx(
        ensemble,
        images,
        dynamic_axes=({0: "images"},),
        outputs=OUTPUTS,
        path=folder / "digits.onnx",
    )
    probs = ensemble(snp.asarray(images))
    expected = {name: np.asarray(of(probs)).tolist() for name, of in OUTPUTS.items()}
    cases = {"images": images.tolist(), "labels": labels.tolist()}
    text = json.dumps({**cases, "expected": expected})
    (folder / "cases.json").write_text(text, encoding="utf-8")
    for name in ("index.html", "page.mjs", "check.mjs", "package.json"):
        shutil.copy(HERE / name, folder)
    print(f"{folder}: {(folder / 'digits.onnx').stat().st_size:,} bytes of model")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

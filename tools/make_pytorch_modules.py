"""Writes ``pytorch-modules.md``: what comes in of PyTorch, and what is refused and why.

Run ``python tools/make_pytorch_modules.py``; a test fails while the file says something else.
"""

import collections
import json
import pathlib
import re
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "docs" / "pytorch-modules.md"
KINDS = ROOT / "tests" / "torch" / "kinds.toml"
RESULTS = ROOT / "benchmarks" / "torch_models" / "wider" / "results.json"

LONGEST = 240
"""Characters of a message that are shown."""

HEAD = """\
# Which PyTorch modules come in

Written by `tools/make_pytorch_modules.py` from what is tested, and tested to be up to date. What
[comes in](pytorch.md) is right, or it is refused in words before it computes anything.

## What modules do

Each line is a module of `tests/torch/kinds.toml`. What comes in is held to PyTorch in float64:
values, gradients of all parameters and buffers after the call, compiled, with the example's number
of rows and with another. What is refused is held to the words of its message.

| | comes in |
| --- | --- |
"""

REFUSED = """
| | is refused | because, and the way out |
| --- | --- | --- |
"""

MODELS = """
## Architectures

`python -m benchmarks.torch_models.wider` imports architectures of PyTorch's libraries, and some
written by hand, with random weights in small configurations, and compares with PyTorch in float64:

- *outputs* in evaluation mode, and *gradients* of a random projection of them;
- *compiled*: the same under `st.jit`;
- *sizes*: outputs of one example and of five, where that of the import has two or three;
- *members*: outputs and gradients of an `Ensemble` of three, with weights of their own;
- *training*: gradients and buffers of a step in train mode.

The largest relative error is shown; more than 1e-9 counts as a difference. Dropout is off, since
random numbers are others than PyTorch's.

{summary}
[Their training](pytorch-models.md) is compared over ten steps for {more} others.

| | outputs | gradients | compiled | sizes | members | training |
| --- | --- | --- | --- | --- | --- | --- |
"""

USES = ("outputs", "gradients", "compiled", "batches", "members", "training")

FAMILIES = {
    "by hand": ("fields", "density", "routing", "sequences", "tables"),
    "torch-geometric": ("geometric",),
    "torchvision": ("torchvision",),
    "timm": ("timm",),
    "diffusers": ("diffusers",),
    "transformers": ("language", "vision", "time"),
}


def page() -> str:
    """The page."""
    kinds = tomllib.loads(KINDS.read_text("utf-8"))
    results = json.loads(RESULTS.read_text("utf-8"))
    lines = [HEAD]
    for family, those in _by_family(kinds["comes_in"]).items():
        lines.append(f"| {family} | {'; '.join([kind['what'] for kind in those])} |\n")
    lines.append(REFUSED)
    for family, those in _by_family(kinds["refused"]).items():
        for kind in those:
            lines.append(f"| {family} | {kind['what']} | {kind['why']} |\n")
    lines.append(MODELS.format(summary=_summary(results), more=73))
    notes: dict[str, list[str]] = {}
    for title, beginnings in FAMILIES.items():
        names = [name for name in sorted(results) if name.split("/")[0] in beginnings]
        if names:
            lines.append(f"| **{title}** | | | | | | |\n")
        lines += [_row(name, results[name]["findings"], notes) for name in names]
    if notes:
        lines.append("\nThe numbers say why:\n\n")
        lines += [
            f"{k}. {', '.join(names)}: {words}\n"
            for k, (words, names) in enumerate(notes.items(), 1)
        ]
    return "".join(lines)


def _by_family(kinds: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = collections.defaultdict(list)
    for kind in kinds:
        found[kind["family"]].append(kind)
    return found


def _summary(results: dict[str, dict[str, str]]) -> str:
    counts = collections.Counter([found["verdict"] for found in results.values()])
    words = {
        "right": "right in all of these",
        "refused": "refused, as a whole or in one of them",
        "differs": "different from PyTorch",
        "failed": "stopped by errors",
    }
    parts = [f"{counts[verdict]} are {text}" for verdict, text in words.items() if counts[verdict]]
    return textwrap.fill(f"Of {len(results)}, {', '.join(parts)}.", 100)


def _row(name: str, findings: dict[str, dict], notes: dict[str, list[str]]) -> str:
    short = name.split("/")[1].replace("_", " ")
    if findings["import"]["verdict"] != "right":
        cells = [_words(short, findings["import"], notes), *[""] * 5]
    else:
        cells = [_cell(short, findings.get(use), notes) for use in USES]
    return f"| {short} | {' | '.join(cells)} |\n"


def _cell(name: str, finding: dict | None, notes: dict[str, list[str]]) -> str:
    if finding is None:
        return ""
    if finding["verdict"] == "right":
        return f"{finding['error']:.0e}"
    if finding["verdict"] == "none":
        return "random"
    return _words(name, finding, notes)


def _words(name: str, finding: dict, notes: dict[str, list[str]]) -> str:
    detail = finding["detail"] or "numbers differ"
    text = detail if finding["verdict"] != "differs" else f"differs in {detail}"
    text = re.sub(r" torch\.export\.export\(.*", "", text.replace("`", ""))
    note = f"`{textwrap.shorten(text, LONGEST, placeholder=' …')}`"
    names = notes.setdefault(note, [])
    if name not in names:
        names.append(name)
    return f"{finding['verdict']} ({list(notes).index(note) + 1})"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")

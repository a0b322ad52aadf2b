"""The command: whole PyTorch models here and in PyTorch, evaluated and trained, in float64.

It needs an environment with PyTorch, the packages that the models are from, and Stretto. Each model
is made with random weights, imported, and compared: its outputs in evaluation mode, in float64 and
in float32; in train mode its loss, all gradients, the buffers after a step, and the parameters
after ten steps of AdamW. The reference is PyTorch in float64.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch

import stretto as st
from benchmarks.torch_models.catalogue import MODELS
from benchmarks.torch_models.comparing import look_at
from benchmarks.torch_models.report import line, page, to_json, versions

__all__ = ["main"]

PARTS = ("evaluation", "training")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if every error is within its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_models", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME,…", help="models whose names begin so, such as timm,written/gru"
    )
    parser.add_argument("--part", choices=PARTS, help="one of the two parts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where to write them as a page")
    options = parser.parse_args(arguments)
    wanted = tuple((options.only or "").split(","))
    models = [model for model in MODELS if model.name.startswith(wanted)]
    if not models:
        parser.error(f"argument --only: no model's name begins with {options.only}")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # most models are small, and threads would wait for each other
    st.config.enable_x64 = True
    all_figures = []
    for model in models:
        figures = look_at(model, [options.part] if options.part else PARTS)
        all_figures.append(figures)
        print(line(figures), flush=True)
        if options.json:  # after each, so that a run that is interrupted leaves something
            options.json.write_text(to_json(all_figures), "utf-8")
    if options.page:
        options.page.write_text(page(all_figures, versions()), "utf-8")
    problems = [text for figures in all_figures for text in figures.problems()]
    print("\n".join([*problems, f"{len(all_figures)} models, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

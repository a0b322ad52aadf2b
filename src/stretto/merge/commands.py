"""The command ``stretto merge``: by a recipe, or a method and models."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from stretto._engine.core.lazy import LazyModule
from stretto.merge import extracting, planning, running
from stretto.merge.methods import METHODS

__all__ = ["run"]

time = LazyModule("time")


def run(options: argparse.Namespace) -> int:
    """Merge as the arguments say; what is wrong is told on standard error, with status 2."""
    try:
        if options.extract_lora is not None:
            return _extract(options)
        recipe, out = _asked(options)
        if options.dry_run:
            _show(planning.plan(recipe, shard_size=_size(options.shard_size)), options)
            return 0
        report = running.run(
            recipe, out, memory=options.memory, shard_size=options.shard_size, seed=options.seed,
            nonfinite="keep" if options.keep_nonfinite else "error", verify=options.verify,
            resume=not options.restart,
            progress=_Progress() if sys.stderr.isatty() and not options.json else None,
        )  # fmt: skip
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        words = str(error).removeprefix("merge: ").removeprefix("run: ")
        print(f"stretto merge: {words}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stretto merge: stopped; the same call goes on where it was", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(report._asdict(), indent=2))
    else:
        again = f", {report.resumed:,} of them from before" if report.resumed else ""
        print(f"{report.path}: {report.tensors} tensors, {report.nbytes:,} bytes{again}")
    return 0


def _extract(options: argparse.Namespace) -> int:
    """Write an adapter, and say what it lacks."""
    if options.base is None or options.out is None or len(options.paths) != 1:
        raise ValueError("expected --extract-lora RANK --base BASE MODEL --out OUT")
    found = extracting.extract_lora(
        options.paths[0], options.base, options.out, options.extract_lora, dtype=options.out_dtype
    )
    if options.json:
        print(json.dumps(found._asdict(), indent=2))
        return 0
    worst = max(found.errors, key=lambda m: found.errors[m])
    print(
        f"{found.path}: {len(found.errors)} layers; at most {found.errors[worst]:.1%} of a "
        f"difference is lacking, in {worst}"
    )
    if found.left:
        print(f"not in it, though they differ: {', '.join(found.left)}")
    return 0


def _size(text: str | None) -> int | None:
    return None if text is None else running.in_bytes(text, "shard_size")


def _asked(options: argparse.Namespace) -> tuple[Any, str]:
    """Return the recipe and the place of the result."""
    if options.method is None:
        recipe, *places = [*options.paths, *([] if options.out is None else [options.out])]
        if len(places) != 1 and not (options.dry_run and not places):
            raise ValueError(
                "expected RECIPE OUT, or --method METHOD MODEL ... --out OUT (see stretto merge -h)"
            )
        given = {"--base": options.base, "--set": options.set, "--out-dtype": options.out_dtype}
        idle = [name for name, value in given.items() if value]
        if idle:
            raise ValueError(f"{' and '.join(idle)} goes with --method: write it into the recipe")
        return recipe, "".join(places)
    if options.out is None and not options.dry_run:
        raise ValueError("expected --out OUT, the place of the result, with --method")
    settings: dict[str, Any] = {}
    for text in options.set:
        name, _, value = text.partition("=")
        try:
            settings[name] = json.loads(f"[{value}]" if "," in value and value[0] != "[" else value)
        except ValueError:
            raise ValueError(
                f"--set: expected NAME=NUMBER, or NAME=NUMBER,NUMBER,... with one for each model, "
                f"got {text!r}"
            ) from None
    how = METHODS.get(options.method)
    each = {s.name for s in how.settings if s.each} if how else set()
    if how is not None and how.beside is not None:
        each.add(how.beside.key)
    models: list[dict[str, Any]] = [{"path": path} for path in options.paths]
    for name in each & settings.keys():
        values = settings.pop(name)
        values = values if isinstance(values, list) else [values] * len(models)
        if len(values) != len(models):
            raise ValueError(
                f"--set: expected one {name}, or one for each of {len(models)} models, got "
                f"{len(values)}"
            )
        for model, value in zip(models, values, strict=True):
            model[name] = value
    recipe: dict[str, Any] = {"method": options.method, "models": models, "parameters": settings}
    if options.base is not None:
        recipe["base"] = options.base
    if options.out_dtype is not None:
        recipe["out_dtype"] = options.out_dtype
    return recipe, options.out or ""


def _show(plan: planning.Plan, options: argparse.Namespace) -> None:
    try:
        if not options.json:
            print(plan)
            return
        tensors = {
            step.name: {
                "dtype": step.code,
                "shape": step.shape,
                "from": [str(s) for s in (*step.models, *([step.base] if step.base else []))],
                "settings": None if step.copied else step.settings,
            }
            for step in plan.steps
        }
        said = {"files": [s.path for s in plan.shards], "nbytes": plan.nbytes, "tensors": tensors}
        print(json.dumps(said, indent=2, default=planning.plain))
    finally:
        plan.close()


class _Progress:
    """Shows on a terminal how far a run is."""

    def __init__(self) -> None:
        self.shown = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Show it, at most ten times a second."""
        now = time.monotonic()
        if now - self.shown > 0.1 or done >= total:
            self.shown = now
            end = "\n" if done >= total else ""
            print(
                f"\r{done / max(total, 1):6.1%} of {total:,} bytes",
                end=end,
                file=sys.stderr,
                flush=True,
            )

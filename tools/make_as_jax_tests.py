"""Writes ``as-jax-tests.md``: which tests of JAX's libraries pass here, and why others do not.

Run ``python tools/make_as_jax_tests.py``; a test fails while the file says something else.
"""

import json
import pathlib

ROOT = pathlib.Path(__file__).parents[1]
TARGET = ROOT / "docs" / "as-jax-tests.md"
FOLDER = ROOT / "benchmarks" / "ecosystem"

HEAD = """\
# The tests of JAX's libraries

Written by `tools/make_as_jax_tests.py` from `benchmarks/ecosystem/figures.json` and
`exceptions.json`, and tested to be up to date. `make ecosystem` runs the tests of each library from
its source archive, unedited, in an environment without JAX, and holds what fails to the second
file. With `--peer-python` it runs what fails on JAX 0.10.2 too, on the same machine, and writes the
first: tests that fail there as well are not counted.

| library | pass here | of those that pass on JAX | skipped by their own conditions |
| --- | --- | --- | --- |
"""

EXCEPTIONS = """
## What fails, and why

A name that ends with `*` stands for all that begin so; a test that has a line here and fails on JAX
too says so.
"""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def page() -> str:
    """The page."""
    figures = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    known = json.loads((FOLDER / "exceptions.json").read_text("utf-8"))
    rows = [
        f"| {name} {f['version']} | {f['passed']:,} of {f['on JAX']:,} | "
        f"{f['passed'] / f['on JAX']:.1%} | {_count(f['skipped'])} |\n"
        for name, f in sorted(figures.items())
    ]
    lines = [HEAD, *rows, EXCEPTIONS]
    for name, tests in sorted(known.items()):
        reasons: dict[str, list[str]] = {}
        for test, reason in tests.items():
            reasons.setdefault(reason, []).append(f"`{test}`")
        lines.append(f"\n### {name}\n\n")
        lines += [f"- {why}: {', '.join(names)}\n" for why, names in reasons.items()]
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")

"""Modules from elsewhere, read in a process of their own.

jaxlib's reader of portable artifacts trusts its bytes: damaged ones end the process that reads
them, now and then. So a child reads them, writes down their functions as text, and compiles these
once, since XLA may end a process over what the reader lets pass. What comes back is text alone,
which this process checks again as it parses it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stretto._engine.core.types import array_type
from stretto._engine.lowering.portable import ALLOWED
from stretto._engine.lowering.text import Facts, Text
from stretto._engine.xla import artifacts, pjrt
from stretto._engine.xla.artifacts import Functions
from stretto.files.names import Damaged

CODE = "import sys; sys.path.insert(0, {home!r}); from stretto.export.child import answer; answer()"
"""What a child runs."""

_SECONDS = 600
"""The time that a child has to read a file and compile what is in it."""


def functions_of(modules: Sequence[bytes]) -> list[Functions]:
    """Read portable artifacts, in a child.

    Args:
        modules: the artifacts.

    Returns:
        The functions of each.

    Raises:
        Damaged: one is damaged, or has in it what is refused.
    """
    return _asked({"modules": [base64.b64encode(m).decode() for m in modules]})


def text_of(module: bytes) -> str:
    """Write a portable artifact as text, in a child.

    Args:
        module: the artifact.

    Returns:
        The text of the module.

    Raises:
        Damaged: it is damaged.
    """
    return _answered({"text": base64.b64encode(module).decode()})["text"]


def functions_at(functions: Functions, inputs: Sequence[str], outputs: Sequence[str]) -> Functions:
    """Fix the shapes of a module, in a child.

    Args:
        functions: the module.
        inputs: the types of its arguments, in MLIR.
        outputs: the types of its results.

    Returns:
        The functions for these types.

    Raises:
        Damaged: the module does not take these types.
    """
    return _asked({"functions": functions, "inputs": inputs, "outputs": outputs})[0]


def _asked(question: dict[str, Any]) -> list[Functions]:
    """Have a child answer with functions."""
    return [
        checked(Functions(text, main, tuple(inputs), tuple(outputs), tuple(targets)))
        for text, main, inputs, outputs, targets in _answered(question)["functions"]
    ]


_CALLS = re.compile(r'custom_call\s+@("[^"]*"|[^\s(]+)|call_target_name\s*=\s*"([^"]*)"')


def checked(functions: Functions) -> Functions:
    """Hold functions to the list of custom calls once more, by their text.

    Args:
        functions: what a child gave, which damaged bytes may have led astray.

    Returns:
        The same functions.

    Raises:
        ValueError: there is a custom call that is not on the list.
    """
    for found in _CALLS.finditer(functions.text):
        target = (found[1] or found[2]).strip('"')
        if target not in ALLOWED:
            raise Damaged(f"the module has the custom call {target!r}")
    return functions


def _answered(question: dict[str, Any]) -> dict[str, Any]:
    """Have a child answer."""
    home = str(Path(__file__).parents[2])
    code = CODE.format(home=home)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "STRETTO_DISK_CACHE": "0"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(question).encode(),
            capture_output=True,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Damaged(f"reading its module took longer than {_SECONDS} s") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise Damaged(
            f"reading its module ended the process that did, {_ending(done.returncode)}: it is "
            f"damaged, or made to do harm"
        ) from None
    if "error" in answer:
        raise Damaged(answer["error"])
    return answer


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"with status {code}"


def answer() -> None:
    """Answer what standard input asks, as the child; the answer goes to standard output."""
    question = json.load(sys.stdin)
    found: list[Functions] = []
    try:
        if "modules" in question:
            found = [
                artifacts.functions_of_artifact(base64.b64decode(module))
                for module in question["modules"]
            ]
        elif "functions" in question:
            functions = Functions(*question["functions"])
            found = [artifacts.functions_at(functions, question["inputs"], question["outputs"])]
        for functions in found:
            if artifacts.is_fixed((*functions.inputs, *functions.outputs)):
                _try_to_compile(functions)
        answer: dict[str, Any] = {"functions": found}
        if "text" in question:
            answer["text"] = artifacts.text_of_artifact(base64.b64decode(question["text"]))
    except (ValueError, RuntimeError) as error:
        answer = {"error": str(error)[:2000]}
    print(json.dumps(answer))


def _try_to_compile(functions: Functions) -> None:
    """Compile a module; the result is thrown away."""
    facts = Facts(has_loops=True, targets={*functions.targets})
    scalar = array_type((), np.dtype(np.float32))
    text = Text(artifacts.as_module(functions), facts=facts)
    pjrt.compile_text(text, [scalar] * len(functions.outputs))

"""The kinds of things that modules do, of ``kinds.toml``; nothing here imports PyTorch."""

from __future__ import annotations

import dataclasses
import pathlib
import textwrap
import tomllib

FILE = pathlib.Path(__file__).parent / "kinds.toml"


@dataclasses.dataclass(frozen=True)
class Kind:
    """Something that a module does; ``kinds.toml`` says what its parts are."""

    family: str
    what: str
    before: str = ""
    init: str = ""
    takes: str = "x"
    forward: str = ""
    after: str = ""
    args: str = "(torch.randn(3, 4),)"
    sizes: bool = True
    train: bool = False
    use: str = ""
    says: str = ""
    why: str = ""

    @property
    def code(self) -> str:
        """Python that makes the module, by that name, and ``args``."""
        lines = [self.before]
        if self.forward:
            init = f"super().__init__()\nself.layer = nn.Linear(4, 4)\n{self.init}"
            lines += ["class Net(nn.Module):", "    def __init__(self):"]
            lines += [textwrap.indent(init, " " * 8), f"    def forward(self, {self.takes}):"]
            lines += [textwrap.indent(self.forward, " " * 8), "module = Net()"]
        return "\n".join([*lines, self.after, f"args = {self.args}"])


def _read() -> dict[str, list[Kind]]:
    tables = tomllib.loads(FILE.read_text("utf-8"))
    return {name: [Kind(**entry) for entry in entries] for name, entries in tables.items()}


_KINDS = _read()
COMES_IN = _KINDS["comes_in"]
REFUSED = _KINDS["refused"]

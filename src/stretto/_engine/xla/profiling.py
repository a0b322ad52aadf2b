"""The names that operations of compiled programs have in profiles.

``stretto.profiler`` has the rest.
"""

from __future__ import annotations

from collections.abc import Collection

from stretto._engine.xla import pjrt
from stretto._engine.xla.instructions import instructions_in


def op_names(modules: Collection[str]) -> dict[tuple[str, str], str]:
    """The ``op_name`` of each instruction of compiled programs, by module and instruction.

    Instructions on which programs of the same name disagree are left out.
    """
    names: dict[tuple[str, str], str] = {}
    ambiguous = set()
    for loaded in pjrt.live_executables():
        for module in loaded.hlo_modules():
            if module.name in modules:
                for instruction in instructions_in(module):
                    key, name = (module.name, instruction.name), instruction.operation
                    if name and names.setdefault(key, name) != name:
                        ambiguous.add(key)
    return {key: name for key, name in names.items() if key not in ambiguous}

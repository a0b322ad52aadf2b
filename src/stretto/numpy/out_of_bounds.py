"""What to do about indices that are out of bounds."""

from __future__ import annotations

from stretto.numpy.indices import Index

__all__ = ["canonical_mode", "settle"]


_MODES = {
    None: None,
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise_in_bounds",
    "raise": "raise",
}


def canonical_mode(mode: str | None, default: str) -> str:
    """Give the canonical name of a mode: ``"drop"`` is ``"fill"``."""
    if mode not in _MODES:
        names = ", ".join(repr(name) for name in _MODES if name)
        raise ValueError(f"indexing: mode must be one of {names}; got {mode!r}")
    return _MODES[mode] or default


def settle(parsed: Index, mode: str) -> tuple[Index, str]:
    """Clamp known places; where all are known and in bounds, the mode has nothing left to do."""
    if mode == "fill" and parsed.undecided():
        return parsed, mode
    if parsed.concrete and parsed.outside():
        return (parsed, mode) if mode == "fill" else (parsed.clamped(), "promise_in_bounds")
    return parsed, "promise_in_bounds" if parsed.concrete else mode

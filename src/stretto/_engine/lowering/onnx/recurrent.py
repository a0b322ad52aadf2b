"""Rules of spelling: a Scan whose step is that of an LSTM, a GRU or an RNN is that operator."""

from __future__ import annotations

from typing import Any

RULES: dict[str, tuple[Any, ...]] = {}

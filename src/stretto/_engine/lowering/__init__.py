"""Programs written as StableHLO text; no primitive is known by name here.

Read ``text`` (how things are spelt), ``writer`` (what ``lower`` rules call), then ``stablehlo``
(whole programs).
"""

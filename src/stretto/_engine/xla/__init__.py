"""Layer 6: arrays, devices and compiled programs; only ``pjrt`` imports jaxlib.

Read ``pjrt`` (jaxlib), ``array``, ``eager`` (what runs outside any trace), ``cache`` and ``disk``
(compiled programs, kept), then ``callbacks``.
"""

"""Arrays, devices and compiled programs; only ``clients`` and ``pjrt`` import jaxlib.

Read ``pjrt`` (jaxlib), ``array``, ``eager`` (what runs outside any trace), ``cache`` and ``disk``
(compiled programs, kept), then ``callbacks``.
"""

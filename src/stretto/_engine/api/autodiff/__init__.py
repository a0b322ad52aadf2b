"""Derivatives of functions of trees.

Read ``derivatives`` with ``flat``, then ``jacobians`` and ``checkpoint``.
"""

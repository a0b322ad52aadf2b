"""Stretto."""

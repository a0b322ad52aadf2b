"""Derivatives of functions of trees."""

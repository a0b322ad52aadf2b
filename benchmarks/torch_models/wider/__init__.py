"""Architectures beyond those whose training is compared: each is imported, and used in all ways."""

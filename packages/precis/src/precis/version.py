"""The version, where every level can read it."""

__version__ = "0.1.0"

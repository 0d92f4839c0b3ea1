"""precis: pre-train, adapt, evaluate and run abstractive summarizers."""

__version__ = "0.1.0"

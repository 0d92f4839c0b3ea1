"""The small model that comes with precis: a folder of weights next to this file."""

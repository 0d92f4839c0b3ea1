"""The small model that comes with precis: a folder of weights, beside this file."""

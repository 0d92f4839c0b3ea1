"""The weights of `writer`, a small language model that writes English; `conversion` makes them."""

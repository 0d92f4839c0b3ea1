"""One letter, one meaning: the axis names used in every tensor signature of precis.

    b  rows of a batch              h  attention heads
    i  query positions              j  key positions
    n  positions, where queries and keys are the same ones
    s  source (encoder) positions   t  target (decoder) positions
    d  model width                  e  width of one head
    w  width of the token table     v  vocabulary entries
    r  rows of a relative-position table
    c  chunks of all documents      l  positions in a chunk

A "#" before a letter means that the axis may be 1 and broadcast; "*" stands for any number of axes.
"""

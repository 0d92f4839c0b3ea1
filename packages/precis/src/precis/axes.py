"""One letter, one meaning: the axis names used in every tensor signature of precis.

    b  rows of a batch              h  attention heads
    i  query positions              j  key positions
    n  positions, where queries and keys share them
    s  source (encoder) positions   t  target (decoder) positions
    d  model width                  e  width of one head
    w  width of the token table     v  vocabulary entries
    r  rows of a relative-position table
    c  chunks of all documents      l  positions in a chunk

A "#" before a letter allows size 1, which broadcasts; "*" stands for any number of axes.
"""

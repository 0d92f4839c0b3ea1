"""One letter, one meaning: the axis names used in every tensor signature of precis.

    b  rows of a batch              h  attention heads
    i  query positions              j  key positions
    n  positions, where queries and keys share them
    s  source (encoder) positions   t  target (decoder) positions
    d  model width                  e  width of one head
    w  width of the token table     v  vocabulary entries
    r  rows of a relative-position table
    c  chunks of all documents      l  positions in a chunk

Letters together name one axis: h heads of width e make "he"; others are joined end to end, and their lengths add up.

    tp  t main and p predicting states
    pj  p prefix columns, then j keys; "ps", "pl": before source positions, before positions in a chunk
    dd  two vectors of width d
    jo  j keys, and last the query's own key where there is one

jaxtyping cannot bind a sum such as "t+p", so each has a name.
A "#" before a letter allows size 1, which broadcasts; "*" stands for any number of axes.
"""

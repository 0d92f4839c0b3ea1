"""One letter, one meaning: the axis names used in every tensor signature of precis.

b  rows of a batch              h  attention heads
i  query positions              j  key positions
s  source (encoder) positions   t  target (decoder) positions
d  model width                  e  width of one head
f  feed-forward width           v  vocabulary entries
r  rows of a relative-position table
c  chunks of all documents      l  positions in a chunk
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

SourceIds = Int[Tensor, "b s"]
TargetIds = Int[Tensor, "b t"]
SourceMask = Bool[Tensor, "b s"]
SourceStates = Float[Tensor, "b s d"]
TargetStates = Float[Tensor, "b t d"]
Logits = Float[Tensor, "b t v"]

Queries = Float[Tensor, "b h i e"]
Keys = Float[Tensor, "b h j e"]
Scores = Float[Tensor, "#b #h i j"]
Mask = Bool[Tensor, "#b #h #i j"]

"""One of two processes that train a prefix together: `two_ranks.py RANK MEETING_PLACE RESULT`."""

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from safetensors.torch import save_file
from torch.nn.parallel import DistributedDataParallel

from precis.tuning import Prefix, method
from precis.tuning.prefix import Reparametrized
from tests.conformance import random_batch
from tests.tuning.bases import SEGMENTS, attach_loud, base

if __name__ == "__main__":
    rank, meeting, result = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    model = base().train()
    prefix = Prefix(length=6, keys=Reparametrized(width=16))
    # each rank starts elsewhere; the first one's parameters count
    attachment = attach_loud(model, method("hierblock", prefix, SEGMENTS), seed=1 + rank)
    together = DistributedDataParallel(model)
    ids, mask, labels = random_batch(model, seed=rank)
    together(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    if rank == 0:
        save_file({name: p.grad for name, p in attachment.prefixes.named_parameters()}, result)
    torch.distributed.destroy_process_group()

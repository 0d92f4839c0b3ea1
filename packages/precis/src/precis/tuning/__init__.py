"""Discourse-aware prefixes for any encoder-decoder: `attach(model, method("hierblock", Prefix(length=100)))`."""

from precis.tuning.adapter_folder import Adapter, read_adapter
from precis.tuning.attach import Attachment, attach, attached, load_adapter
from precis.tuning.discourse import METHODS, MethodSettings, Tuning, method
from precis.tuning.prefix import NoPrefix, Prefix

__all__ = [
    "METHODS", "Adapter", "Attachment", "MethodSettings", "NoPrefix", "Prefix", "Tuning", "attach", "attached",
    "load_adapter", "method", "read_adapter",
]  # fmt: skip

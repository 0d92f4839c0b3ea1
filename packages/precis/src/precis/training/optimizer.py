"""AdamW with the usual weight-decay groups."""

import torch
from torch import nn, optim

from precis.training.training_settings import TrainSettings
from precis_text.errors import UserError

_NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._BatchNorm)


def decay_groups(model: nn.Module) -> tuple[dict[str, nn.Parameter], dict[str, nn.Parameter]]:
    """Return the trainable parameters by name: those with weight decay, and those without.

    All parameters of norms, and all with fewer than two dimensions (biases, scales), are exempt, as in DeBERTa's
    code. Embeddings and relative-position tables are decayed. A tied parameter is listed once.
    """
    norm_parameters = {
        id(p) for module in model.modules() if isinstance(module, _NORMS) for p in module.parameters()
    }
    decayed: dict[str, nn.Parameter] = {}
    exempt: dict[str, nn.Parameter] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_exempt = parameter.ndim < 2 or id(parameter) in norm_parameters
            (exempt if is_exempt else decayed)[name] = parameter
    return decayed, exempt


def build_optimizer(model: nn.Module, settings: TrainSettings) -> optim.AdamW:
    """Build the fused AdamW for the trainable parameters: one pass over memory, on CPU and GPU.

    Raises:
        UserError: no parameter is trainable, or a trainable one is not fp32.
    """
    decayed, exempt = decay_groups(model)
    if not decayed and not exempt:
        raise UserError("the model does not have a trainable parameter; set requires_grad on those to train")
    for name, parameter in (decayed | exempt).items():
        if parameter.dtype != torch.float32:
            raise UserError(
                f"parameter {name!r} is {parameter.dtype}, but training keeps fp32 weights; load the model "
                f"with dtype=torch.float32 (precision='bf16' still computes in bf16)"
            )
    groups = [
        {"params": list(decayed.values()), "weight_decay": settings.weight_decay},
        {"params": list(exempt.values()), "weight_decay": 0.0},
    ]
    return optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.eps,
        fused=True,
    )


def set_learning_rate(optimizer: optim.Optimizer, rate: float) -> None:
    """Use `rate` for the next step, in every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate

"""Discourse-aware prefixes as a method of PEFT. Importing this module registers the method.

    from peft import PeftModel, get_peft_model
    from precis import Prefix, method
    from precis.tuning.peft_method import DiscoursePrefixConfig

    model = get_peft_model(base, DiscoursePrefixConfig.of(method("hierblock", Prefix(length=50))))
    ...                                    # train it like any model of PEFT, say with transformers' Trainer
    model.save_pretrained("adapter")
    model = PeftModel.from_pretrained(base, "adapter")    # later; the import above is needed there too

Needs the extra `peft`. `base` is any encoder-decoder that `precis.attach` takes. `load_adapter`, `set_adapter`,
`disable_adapter` and `unload` work as PEFT documents them, with one adapter attached at a time. The base is frozen
until `unload`. A prefix cannot be merged into weights.

PEFT's own PrefixTuning is another method: on BART it reaches the decoder's self-attention only, and moves its
positions. The saved prefix is folded, as by `Attachment.save`, but in PEFT's own files; the base is recorded and
checked in the same way. The network that computes the keys (`Reparametrized`) is not saved, so an earlier optimizer
state does not fit after loading. To resume runs, train keys and values directly (`Direct`), or use `precis tune`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self, final

from torch import Tensor, nn

from precis.tuning.adapter_folder import Adapter, BaseRecord, folded, in_float16
from precis.tuning.attach import Attachment, attach, reattach
from precis.tuning.discourse import Tuning
from precis.tuning.prefix import NoPrefix, PrefixTable
from precis.tuning.stack_prefixes import Prefixes
from precis_text.errors import UserError, missing_extra

try:
    from peft import PeftConfig
    from peft.mapping import (
        PEFT_TYPE_TO_CONFIG_MAPPING,
        PEFT_TYPE_TO_PREFIX_MAPPING,
        PEFT_TYPE_TO_TUNER_MAPPING,
    )
    from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
except ImportError as missing:
    raise missing_extra("peft", wanted_by="precis.tuning.peft_method") from missing


class _Kind(StrEnum):
    """The name of the method. PEFT's own enumeration is closed, but its tables take any string."""

    DISCOURSE_PREFIX = "DISCOURSE_PREFIX"


@dataclass
class DiscoursePrefixConfig(PeftConfig):
    """The PEFT configuration of a prefix; make it with `of`.

    Attributes:
        tuning: the `Tuning` as JSON values.
        base: the `BaseRecord` as JSON values; set when the adapter is attached.
    """

    tuning: dict[str, Any] | None = None
    base: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.peft_type = _Kind.DISCOURSE_PREFIX

    @classmethod
    def of(cls, tuning: Tuning) -> Self:
        """Make a configuration of these settings, for sequence-to-sequence models.

        Raises:
            UserError: without a prefix. PEFT freezes the base, so nothing would be trained.
        """
        if isinstance(tuning.prefix, NoPrefix):
            raise UserError(
                "sparse attention without a prefix trains the base itself; use precis.tuning.attach instead"
            )
        return cls(task_type="SEQ_2_SEQ_LM", tuning=tuning.to_dict())

    def settings(self) -> Tuning:
        """Read the settings; raise `UserError` if they are missing or invalid."""
        if self.tuning is None:
            raise UserError("DiscoursePrefixConfig lacks tuning; make it with DiscoursePrefixConfig.of(...)")
        return Tuning.from_dict(self.tuning)

    def to_dict(self) -> dict[str, Any]:
        """Return the values to save, with the settings of the folded tensors."""
        values = asdict(self)
        values["tuning"] = folded(self.settings()).to_dict()
        return values


@final
class Shelf(nn.Module, BaseTunerLayer):
    """The prefixes of all adapters, attached or not, in the form in which PEFT counts and lists them."""

    adapter_layer_names = ("prefixes",)

    def __init__(self) -> None:
        super().__init__()
        self.prefixes = nn.ModuleDict()

    def report(self, active: str, *, attached: bool) -> None:
        """Set the adapter that PEFT reports as active."""
        self._active_adapter, self._disable_adapters = active, not attached


@final
class DiscoursePrefixModel(BaseTuner):
    """PEFT's tuner: it holds the base and the prefixes of each adapter, and attaches one of them.

    PEFT requires a `BaseTuner`, which replaces layers. This one replaces none.
    """

    prefix = "prefixes"

    def __init__(
        self, model: Any, peft_config: dict[str, DiscoursePrefixConfig], adapter_name: str, **_: Any
    ) -> None:
        nn.Module.__init__(self)  # that of BaseTuner would look for layers to replace
        self.model = model
        self.peft_config = peft_config
        self.active_adapter = adapter_name
        self.shelf = Shelf()
        self._attachment: Attachment | None = None
        self._trained: set[str] = set()
        self._before = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
        self.inject_adapter(model, adapter_name)

    @property
    def active_adapters(self) -> list[str]:
        """The attached adapter."""
        return [self.active_adapter]

    def inject_adapter(self, model: Any, adapter_name: str, **_: Any) -> None:
        """Add an adapter. The first is attached, and trained unless it is for inference; others stay frozen.

        Raises:
            UserError: if the base does not support prefixes, or is not the one that the adapter was trained on.
        """
        config, attached = self.peft_config[adapter_name], self._attachment is not None
        first = not len(self.shelf.prefixes)
        if attached:
            self._detach()
        try:
            made = self._made(config, adapter_name)
        finally:
            if attached:
                self._attach()
        self.shelf.prefixes[adapter_name] = made
        if first:
            self.active_adapter = adapter_name
            self._trained = set() if config.inference_mode else {adapter_name}
            self._attach()
        self._grant()

    def _made(self, config: DiscoursePrefixConfig, name: str) -> Prefixes:
        """Make prefixes for the base, which has none before and after."""
        made = attach(self.model, config.settings())
        try:
            base = made.base()
            if config.base is not None:
                adapter = Adapter(
                    made.tuning, BaseRecord.from_dict(config.base), {}, f"the PEFT adapter {name!r}"
                )
                adapter.check(base, rounded=in_float16(self.model))
            config.base = config.base or base.to_dict()
        finally:
            made.detach()
        return made.prefixes

    def set_adapter(self, adapter_name: str | list[str], inference_mode: bool = False) -> None:
        """Attach another adapter. Only this one is trained, or none with `inference_mode`.

        Raises:
            UserError: if the name is unknown, or several names are given.
        """
        names = [adapter_name] if isinstance(adapter_name, str) else adapter_name
        if len(names) != 1 or names[0] not in self.shelf.prefixes:
            raise UserError(f"set_adapter({adapter_name!r}): give one name of {sorted(self.shelf.prefixes)}")
        self.active_adapter = names[0]
        self._trained = set() if inference_mode else {names[0]}
        self.enable_adapter_layers()

    def set_requires_grad(self, adapter_names: str | Sequence[str], requires_grad: bool = True) -> None:
        """Set whether adapters are trained; it applies while one is attached."""
        names = {adapter_names} if isinstance(adapter_names, str) else set(adapter_names)
        self._trained = self._trained | names if requires_grad else self._trained - names
        self._grant()

    def enable_adapter_layers(self) -> None:
        """Attach the active adapter."""
        self._detach()
        self._attach()
        self._grant()

    def disable_adapter_layers(self) -> None:
        """Use only the base, still frozen, until an adapter is enabled."""
        self._detach()
        self._grant()

    def delete_adapter(self, adapter_name: str) -> None:
        """Delete an adapter; if it is active, the first of the others replaces it."""
        if adapter_name == self.active_adapter:
            self._detach()
        del self.shelf.prefixes[adapter_name]
        del self.peft_config[adapter_name]
        self._trained.discard(adapter_name)
        if adapter_name == self.active_adapter and len(self.shelf.prefixes):
            self.set_adapter(next(iter(self.shelf.prefixes)))

    def unload(self) -> Any:
        """Return the base in its original state."""
        self._detach()
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self._before[name])
        return self.model

    def merge_and_unload(self, *_: Any, **__: Any) -> Any:
        """Refuse to merge.

        Raises:
            UserError: always.
        """
        raise UserError(
            "a prefix adds keys and values and changes no weights, so it cannot be merged into the base; "
            "use unload() to remove it"
        )

    merge_adapter = merge_and_unload

    def _attach(self) -> None:
        prefixes = self.shelf.prefixes[self.active_adapter]
        assert isinstance(prefixes, Prefixes)
        self._attachment = reattach(self.model, prefixes)
        self.shelf.report(self.active_adapter, attached=True)

    def _detach(self) -> None:
        if self._attachment is not None:
            self._attachment.detach()
        self._attachment = None
        self.model.requires_grad_(False)
        self.shelf.report(self.active_adapter, attached=False)

    def _grant(self) -> None:
        """Enable gradients for trained adapters, and for none while no adapter is attached."""
        for name, prefixes in self.shelf.prefixes.items():
            prefixes.requires_grad_(self._attachment is not None and name in self._trained)

    def _create_and_replace(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("a prefix replaces no layer")

    # Names in PEFT's files: "base_model.shelf.prefixes.tables.SITE.table", without the adapter's name.

    @classmethod
    def _get_adapter_state_dict(cls, *, model: Any, adapter_name: str, **_: Any) -> dict[str, Tensor]:
        prefixes = model.base_model.shelf.prefixes[adapter_name]
        return {
            f"base_model.shelf.prefixes.{adapter_name}.tables.{site}.table": table.folded().detach().clone()
            for site, table in prefixes.tables.items()
        }

    @classmethod
    def _remove_adapter_name_from_key(cls, key: str, adapter_name: str) -> str:
        return key.replace(f"base_model.shelf.prefixes.{adapter_name}.", "base_model.shelf.prefixes.", 1)

    @classmethod
    def _remap_adapter_state_dict_for_load(
        cls, *, model: Any, adapter_name: str, state_dict: dict[str, Tensor], **_: Any
    ) -> dict[str, Tensor]:
        for table in model.base_model.shelf.prefixes[adapter_name].tables.values():
            assert isinstance(table, PrefixTable)
            table.fold()  # the saved tensors are folded
        return {
            re.sub(
                r"^base_model\.shelf\.prefixes\.", f"base_model.shelf.prefixes.{adapter_name}.", key
            ): tensor
            for key, tensor in state_dict.items()
        }


# Assigned, not registered by peft.utils.register_peft_method, which accepts only PEFT's own types.
PEFT_TYPE_TO_CONFIG_MAPPING[_Kind.DISCOURSE_PREFIX] = DiscoursePrefixConfig
PEFT_TYPE_TO_TUNER_MAPPING[_Kind.DISCOURSE_PREFIX] = DiscoursePrefixModel
PEFT_TYPE_TO_PREFIX_MAPPING[_Kind.DISCOURSE_PREFIX] = DiscoursePrefixModel.prefix

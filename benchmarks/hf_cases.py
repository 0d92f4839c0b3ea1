"""The model classes of precis, as transformers' common tests want to have them, and which of the tests may fail.

`benchmarks.hf_conformance` runs this module; by itself it is of no use.
"""

import importlib
import unittest
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from precis.models import ProphetNetConfig, ProphetNetModel, ZCodePPConfig, ZCodePPModel
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoderModel, ZCodePPForSequenceClassification
from precis.nn.blocks import LayerStack

common: Any = importlib.import_module("hf_tests.test_modeling_common")
configurations: Any = importlib.import_module("hf_tests.test_configuration_common")
common.GradientCheckpointingLayer = (
    LayerStack  # what the tests look for: the module that computes layers twice
)
GenerationTesterMixin = importlib.import_module("hf_tests.generation.test_utils").GenerationTesterMixin

# what the tests ask of a class hangs on the table that has its name; ours are registered, not in the tables
_KINDS = (
    (common.MODEL_MAPPING_NAMES, [ZCodePPModel, ZCodePPEncoderModel]),
    (common.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, [ZCodePPForConditionalGeneration]),
    (common.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, [ZCodePPForSequenceClassification]),
)
_theirs = common.get_values


def _with_ours(table: Any) -> list[Any]:
    ours = [kind.__name__ for known, kinds in _KINDS if known is table for kind in kinds]
    return [*_theirs(table), *ours]


common.get_values = _with_ours

_PADDED = (1, 4)  # (row, from where): the attention mask of the inputs hides the rest


class Tester:
    """Shapes and inputs, under the names that the tests ask for."""

    __test__ = False  # pytest takes it for a test by its name
    batch_size = 3
    seq_length = encoder_seq_length = decoder_seq_length = 7
    key_length = decoder_key_length = 7
    num_hidden_layers = 2
    num_attention_heads = 4
    hidden_size = 32
    vocab_size = 99
    is_training = True

    def __init__(self, case: "Common") -> None:
        self.case = case

    def get_config(self) -> PreTrainedConfig:
        return self.case.config()

    def prepare_config_and_inputs_for_common(self) -> tuple[PreTrainedConfig, dict[str, Any]]:
        generator = torch.Generator().manual_seed(0)
        shape = (self.batch_size, self.seq_length)

        def ids() -> torch.Tensor:
            return torch.randint(3, self.vocab_size, shape, generator=generator)

        mask = torch.ones(shape, dtype=torch.long)
        mask[_PADDED[0], _PADDED[1] :] = 0
        inputs = {"input_ids": ids(), "attention_mask": mask}
        if self.case.is_encoder_decoder:
            inputs |= {
                "decoder_input_ids": ids(),
                "decoder_attention_mask": torch.ones(shape, dtype=torch.long),
            }
        return self.get_config(), inputs

    prepare_config_and_inputs = prepare_config_and_inputs_for_common


class Common:
    """The shared part of every case: its model class, how to build it, and labels of its kind."""

    model_class: type[PreTrainedModel]
    is_encoder_decoder = True
    changes: dict[str, Any] = {}  # noqa: RUF012

    def setUp(self) -> None:
        self.model_tester = Tester(self)

    @property
    def all_model_classes(self) -> tuple[type[PreTrainedModel], ...]:
        return (self.model_class,)

    def config(self) -> PreTrainedConfig:
        raise NotImplementedError

    def check_training_gradient_checkpointing(self, **options: Any) -> None:
        """Run the test on stacks of one layer.

        It counts calls of the module that recomputes layers and expects one a layer. Here that module is the
        whole stack, so one layer each makes the counts equal.
        """
        self.changes = {**self.changes, "encoder_layers": 1, "decoder_layers": 1}
        super().check_training_gradient_checkpointing(**options)  # type: ignore[misc]

    def test_config(self) -> None:
        """Run transformers' common tests of configurations."""
        made = self.config()
        tester = configurations.ConfigTester(
            self, config_class=type(made), hidden_size=32, vocab_size=99, encoder_layers=2
        )
        tester.run_common_tests()


_SHAPE = {"vocab_size": 99, "hidden_size": 32, "encoder_layers": 2, "decoder_layers": 2}


class ZCodePP(Common):
    def config(self) -> ZCodePPConfig:
        shape = {"num_attention_heads": 4, "intermediate_size": 37}
        positions = {"position_buckets": 8, "max_relative_positions": 16}
        return ZCodePPConfig(**{**_SHAPE, **shape, **positions, **self.changes})


class ProphetNet(Common):
    def config(self) -> ProphetNetConfig:
        heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
        shape = {"encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 64}
        positions = {"decoder_buckets": 8, "decoder_max_distance": 16}
        return ProphetNetConfig(**{**_SHAPE, **heads, **shape, **positions, **self.changes})


_Generates = (common.ModelTesterMixin, GenerationTesterMixin, unittest.TestCase)


class ZCodePPForConditionalGenerationTest(ZCodePP, *_Generates):  # type: ignore[misc]
    model_class = ZCodePPForConditionalGeneration


class ZCodePPWithFutureTokensTest(ZCodePP, *_Generates):  # type: ignore[misc]
    model_class = ZCodePPForConditionalGeneration
    changes = {"future_tokens": 2}  # noqa: RUF012


class ZCodePPInChunksTest(ZCodePP, *_Generates):  # type: ignore[misc]
    model_class = ZCodePPForConditionalGeneration
    changes = {"chunk_length": 4}  # noqa: RUF012


class ZCodePPModelTest(ZCodePP, common.ModelTesterMixin, unittest.TestCase):
    model_class = ZCodePPModel


class ZCodePPEncoderModelTest(ZCodePP, common.ModelTesterMixin, unittest.TestCase):
    model_class = ZCodePPEncoderModel
    is_encoder_decoder = False
    changes = {"is_encoder_decoder": False}  # noqa: RUF012


class ZCodePPForSequenceClassificationTest(ZCodePP, common.ModelTesterMixin, unittest.TestCase):
    model_class = ZCodePPForSequenceClassification
    is_encoder_decoder = False
    changes = {"is_encoder_decoder": False}  # noqa: RUF012


class ProphetNetForConditionalGenerationTest(ProphetNet, *_Generates):  # type: ignore[misc]
    model_class = ProphetNetForConditionalGeneration


class ProphetNetOfOneStreamTest(ProphetNet, *_Generates):  # type: ignore[misc]
    model_class = ProphetNetForConditionalGeneration
    changes = {"ngram": 1}  # noqa: RUF012


class ProphetNetModelTest(ProphetNet, common.ModelTesterMixin, unittest.TestCase):
    model_class = ProphetNetModel


_REENTRANT = (
    "use_reentrant=True is refused in one line: it would lose the gradients of tensors that layers share"
)
_MORE = "the weights of predicting streams are outputs too, as in transformers' own ProphetNet, which has another test"
_STREAMS = "the loss is that of all streams (Eq. 11); output.logits are one of them"
_BASE = "AutoModel opens a classifier's folder as the whole encoder-decoder, which the test calls without a target"

#: (class, test) -> why it may fail.
ALLOWED: dict[tuple[str, str], str] = {
    **{
        (case.__name__, "test_training_gradient_checkpointing_use_reentrant_true"): _REENTRANT
        for case in (
            ZCodePPForConditionalGenerationTest,
            ZCodePPWithFutureTokensTest,
            ZCodePPInChunksTest,
            ZCodePPForSequenceClassificationTest,
            ProphetNetForConditionalGenerationTest,
            ProphetNetOfOneStreamTest,
        )
    },
    **{
        (case.__name__, "test_attention_outputs"): _MORE
        for case in (ProphetNetForConditionalGenerationTest, ProphetNetOfOneStreamTest, ProphetNetModelTest)
    },
    ("ProphetNetForConditionalGenerationTest", "test_encoder_decoder_loss_no_double_shift"): _STREAMS,
    ("ZCodePPWithFutureTokensTest", "test_encoder_decoder_loss_no_double_shift"): _STREAMS,
    ("ZCodePPForSequenceClassificationTest", "test_load_with_mismatched_shapes"): _BASE,
}

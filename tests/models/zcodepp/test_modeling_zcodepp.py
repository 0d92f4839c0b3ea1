"""Z-Code++: the claims of the paper's sections 2.2 and 2.3 and of our decoder choice, on small random models."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification
from tests.conformance import check_seq2seq, random_batch


def small(**changes: Any) -> ZCodePPConfig:
    return ZCodePPConfig(
        **{
            "vocab_size": 90,
            "hidden_size": 32,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "initializer_range": 0.2,
            **changes,
        }
    )


def make(**changes: Any) -> ZCodePPForConditionalGeneration:
    torch.manual_seed(0)
    return ZCodePPForConditionalGeneration(small(**changes)).eval()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"shared_position_keys": False}, marks=pytest.mark.many_steps),
        pytest.param({"decoder_feed_forward": "gated-gelu"}, marks=pytest.mark.many_steps),
        pytest.param(
            {"chunk_length": 8, "global_layers": 1}, marks=(pytest.mark.many_steps, pytest.mark.long)
        ),
        pytest.param({"chunk_length": 5, "global_layers": 0}, marks=pytest.mark.many_steps),
    ],
    ids=str,
)
def test_conforms(changes: dict[str, Any]) -> None:
    check_seq2seq(lambda: make(**changes))


def test_large_counts_the_papers_710m_without_memory() -> None:
    with torch.device("meta"):
        model = ZCodePPForConditionalGeneration(ZCodePPConfig())
    total = sum(p.numel() for p in model.parameters())
    table = model.get_input_embeddings().weight.numel()
    assert (total - table) / 1e6 == pytest.approx(705.6, rel=0.002)
    assert total / 1e6 == pytest.approx(837, rel=0.002)


@torch.no_grad()
def test_fusion_with_one_chunk_is_the_dense_encoder() -> None:
    dense, fused = make(), make(chunk_length=32, global_layers=1)
    fused.load_state_dict(dense.state_dict())
    ids, mask, labels = random_batch(dense, lengths=(32, 20, 5))
    expected = dense(input_ids=ids, attention_mask=mask, labels=labels).logits
    assert torch.equal(fused(input_ids=ids, attention_mask=mask, labels=labels).logits, expected)


@torch.no_grad()
def test_fusion_with_all_layers_global_is_the_dense_encoder_at_any_length() -> None:
    dense, fused = make(), make(chunk_length=7, global_layers=3)
    fused.load_state_dict(dense.state_dict())
    ids, mask, labels = random_batch(dense, lengths=(50, 33, 4))
    expected = dense(input_ids=ids, attention_mask=mask, labels=labels).logits
    assert torch.equal(fused(input_ids=ids, attention_mask=mask, labels=labels).logits, expected)


@torch.no_grad()
def test_local_layers_see_their_chunk_only_and_a_global_layer_sees_all() -> None:
    ids = torch.randint(5, 90, (1, 40), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 35] = (changed[0, 35] + 1) % 80 + 5
    for layers, far_changes in ((0, False), (1, True)):
        encoder = make(chunk_length=10, global_layers=layers).get_encoder()
        first, second = encoder(ids).last_hidden_state, encoder(changed).last_hidden_state
        assert torch.equal(first[:, :30], second[:, :30]) is not far_changes
        assert not torch.equal(first[:, 30:], second[:, 30:])


@torch.no_grad()
@pytest.mark.parametrize("lengths", [(23,), (24,), (9, 23, 17), (40, 3, 8, 25)], ids=str)
def test_fusion_encodes_each_document_as_if_it_were_alone(lengths: tuple[int, ...]) -> None:
    encoder = make(chunk_length=8, global_layers=1).get_encoder()
    model = make(chunk_length=8)
    ids, mask, _ = random_batch(model, lengths=(*lengths, 11), target=3)
    together = encoder(ids, mask).last_hidden_state
    for row, length in enumerate((*lengths, 11)):
        alone = encoder(ids[row : row + 1, :length]).last_hidden_state
        torch.testing.assert_close(together[row : row + 1, :length], alone, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_hidden_states_are_whole_sequences_from_every_layer() -> None:
    model = make(chunk_length=8, global_layers=1)
    ids, mask, labels = random_batch(model)
    output = model(input_ids=ids, attention_mask=mask, labels=labels, output_hidden_states=True)
    assert [tuple(h.shape) for h in output.encoder_hidden_states] == [(3, 23, 32)] * 4
    assert [tuple(h.shape) for h in output.decoder_hidden_states] == [(3, 8, 32)] * 3
    base = model.model(input_ids=ids, decoder_input_ids=ids[:, :4], output_hidden_states=True)
    assert torch.equal(base.decoder_hidden_states[-1], base.last_hidden_state)
    assert torch.equal(base.encoder_hidden_states[-1], base.encoder_last_hidden_state)


@torch.no_grad()
def test_the_configuration_decides_what_a_call_leaves_open() -> None:
    model = make()
    ids, _, labels = random_batch(model)
    model.config.output_hidden_states = True
    assert len(model(input_ids=ids, labels=labels).encoder_hidden_states) == 4
    assert model(input_ids=ids, labels=labels, output_hidden_states=False).encoder_hidden_states is None
    model.config.return_dict = False
    assert isinstance(model(input_ids=ids, labels=labels), tuple)
    assert model(input_ids=ids, labels=labels, return_dict=True).logits.shape == (3, 8, 90)


@torch.no_grad()
@pytest.mark.parametrize("kind", [tuple, list])
def test_encoder_outputs_may_be_a_tuple_or_a_list(kind: type[tuple] | type[list]) -> None:
    model = make()
    ids, mask, labels = random_batch(model)
    encoded = kind(model.get_encoder()(ids, mask, return_dict=False))
    found = model(encoder_outputs=encoded, attention_mask=mask, labels=labels).logits
    assert torch.equal(found, model(input_ids=ids, attention_mask=mask, labels=labels).logits)


@torch.no_grad()
def test_a_given_past_is_used_without_use_cache_too() -> None:
    model = make()
    ids, _, _ = random_batch(model)
    target = ids[:, :6]
    expected = model(input_ids=ids, decoder_input_ids=target).logits[:, 5:]
    past = model(input_ids=ids, decoder_input_ids=target[:, :5], use_cache=True).past_key_values
    step = {"decoder_input_ids": target[:, 5:], "past_key_values": past, "use_cache": False}
    torch.testing.assert_close(model(input_ids=ids, **step).logits, expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_target_masks_mean_the_same_in_every_form() -> None:
    model = make()
    ids, _, _ = random_batch(model)
    allowed = torch.ones(3, 1, 4, 4, dtype=torch.bool)
    allowed[..., 1] = False
    additive = torch.zeros(3, 1, 4, 4).masked_fill(~allowed, torch.finfo(torch.float32).min)
    forms = (allowed, allowed.long(), allowed.float(), additive, allowed[:, 0, 0].long())
    first, *others = (
        model(input_ids=ids, decoder_input_ids=ids[:, :4], decoder_attention_mask=form).logits
        for form in forms
    )
    assert not torch.equal(first, model(input_ids=ids, decoder_input_ids=ids[:, :4]).logits)
    assert all(torch.equal(first, other) for other in others)


def test_loss_is_divided_by_the_count_that_a_trainer_gives() -> None:
    model = make()
    ids, mask, labels = random_batch(model)
    inputs = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    count = int((labels != -100).sum())
    mean = model(**inputs).loss
    torch.testing.assert_close(model(**inputs, num_items_in_batch=torch.tensor(count)).loss, mean)
    torch.testing.assert_close(model(**inputs, num_items_in_batch=4 * count).loss, mean / 4)


@pytest.mark.parametrize("feed_forward", ["relu", "gated-gelu"])
def test_models_can_be_sent_to_another_process(feed_forward: str) -> None:
    model = make(decoder_feed_forward=feed_forward)
    again = pickle.loads(pickle.dumps(model))
    assert again.lm_head.weight is again.get_input_embeddings().weight


def test_without_position_scores_no_table_is_made_that_never_learns() -> None:
    model = make(content_to_position=False, position_to_content=False).train()
    ids, _, labels = random_batch(model)
    model(input_ids=ids, labels=labels).loss.backward()
    assert all(p.grad is not None for p in model.parameters())


@torch.no_grad()
def test_decoder_may_be_kept_on_disk(tmp_path: Path) -> None:
    model = make()
    model.save_pretrained(tmp_path / "model")
    places = {"model.encoder": "cpu", "model.decoder": "disk", "lm_head": "cpu"}
    placed = AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "model", device_map=places, offload_folder=tmp_path / "offload"
    )
    ids, mask, labels = random_batch(model)
    expected = model(input_ids=ids, attention_mask=mask, labels=labels).logits
    torch.testing.assert_close(
        placed(input_ids=ids, attention_mask=mask, labels=labels).logits, expected, atol=1e-5, rtol=1e-5
    )


@pytest.mark.long
@pytest.mark.many_steps
@torch.no_grad()
def test_batch_company_leaves_greedy_summaries_unchanged() -> None:
    model = make(vocab_size=300)
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(3, 60, (40,), generator=generator).tolist()
    ids, mask, _ = random_batch(model, lengths=lengths, target=2)
    options = {"max_new_tokens": 12, "do_sample": False}
    together = model.generate(input_ids=ids, attention_mask=mask, **options)
    different = 0
    for row, length in enumerate(lengths):
        alone = model.generate(input_ids=ids[row : row + 1, :length], **options)[0]
        different += not torch.equal(alone, together[row, : len(alone)])
    assert different == 0


def test_decoder_starts_with_t5s_spreads_and_encoder_with_debertas() -> None:
    torch.manual_seed(0)
    model = ZCodePPForConditionalGeneration(
        small(hidden_size=256, num_attention_heads=4, intermediate_size=1024, initializer_range=0.02)
    )
    decoder, encoder = model.model.decoder.layers[0], model.model.encoder.stack.layers[0]
    expected = {
        decoder.self_attention.query: (256 * 64) ** -0.5,
        decoder.self_attention.key: 256**-0.5,
        decoder.cross_attention.output: 256**-0.5,
        decoder.feed_forward.up: 256**-0.5,
        decoder.feed_forward.down: 1024**-0.5,
        model.get_input_embeddings(): 256**-0.5,
        encoder.attention.query: 0.02,
        encoder.feed_forward.up: 0.02,
    }
    for part, std in expected.items():
        assert float(part.weight.detach().std()) == pytest.approx(std, rel=0.03)
    assert not model.get_input_embeddings().weight[model.config.pad_token_id].any()


def test_auto_classes_know_the_model(tmp_path: Path) -> None:
    make().save_pretrained(tmp_path)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), ZCodePPConfig)
    assert isinstance(AutoModelForSeq2SeqLM.from_pretrained(tmp_path), ZCodePPForConditionalGeneration)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
    ]


@torch.no_grad()
def test_classifier_takes_the_encoder_of_a_summarizer(tmp_path: Path) -> None:
    model = make()
    model.save_pretrained(tmp_path)
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3).eval()
    assert isinstance(classifier, ZCodePPForSequenceClassification)
    ids, mask, _ = random_batch(model)
    expected = model.get_encoder()(ids, mask).last_hidden_state
    assert torch.equal(classifier.model.encoder(ids, mask).last_hidden_state, expected)
    assert classifier(ids, mask).logits.shape == (3, 3)


@pytest.mark.many_steps
@pytest.mark.parametrize(("labels", "count"), [(torch.tensor([0, 2]), 3), (torch.tensor([0.5, -1.0]), 1)])
def test_classifier_learns(labels: torch.Tensor, count: int) -> None:
    torch.manual_seed(0)
    config = small(num_labels=count)
    classifier = ZCodePPForSequenceClassification(config)
    ids = torch.randint(5, 90, (2, 9))
    optimizer = torch.optim.Adam(classifier.parameters(), lr=1e-2)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        loss = classifier(ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.slow
def test_model_can_learn_to_copy() -> None:
    """The whole model, trained: a source of random tokens is copied out, which needs content and position."""
    torch.manual_seed(0)
    model = ZCodePPForConditionalGeneration(
        small(hidden_size=64, encoder_layers=2, initializer_range=0.02, vocab_size=200, intermediate_size=256)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(500):
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1, (step + 1) / 50)
        ids = torch.randint(5, 200, (32, 10))
        loss = model(input_ids=ids, labels=torch.cat([ids, torch.full((32, 1), 2)], 1)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    ids = torch.randint(5, 200, (50, 10))
    written = model.generate(input_ids=ids, max_new_tokens=10, min_new_tokens=10, do_sample=False)[:, 1:]
    assert (written == ids).float().mean() > 0.9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 30}, "hidden_size=30 is not a multiple"),
        ({"decoder_feed_forward": "swish"}, "'swish' is not known; use one of relu, gated-gelu"),
        ({"chunk_length": 0}, "chunk_length=0"),
        ({"chunk_length": 8, "global_layers": 9}, "global_layers=9"),
        ({"embedding_size": 16}, "embedding_size=16"),
        ({"hidden_act": "swish"}, "hidden_act='swish' is not known; use one of relu, gelu"),
        ({"convolution_act": "swish"}, "convolution_act='swish'"),
    ],
)
def test_impossible_shapes_are_refused_with_the_value(changes: dict[str, int | str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ZCodePPForConditionalGeneration(small(**changes))


def test_bucketed_positions_are_plain_attention_with_t5s_scores() -> None:
    """The ablation "without disentangled attention": one number for head and distance, dense and in blocks alike."""
    torch.manual_seed(0)
    config = ZCodePPConfig(
        vocab_size=50,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_positions="bucketed",
    )
    model = ZCodePPForConditionalGeneration(config).eval()
    encoder = model.get_encoder()
    with torch.no_grad():
        encoder.stack.positions.rows.weight.normal_()
    ids = torch.randint(5, 50, (1, 1100))
    layer = encoder.stack.layers[0]
    with torch.no_grad():
        got = encoder(ids).last_hidden_state
        states = encoder.embedding(ids, torch.ones_like(ids, dtype=torch.bool))
        q, k, v = (
            f(states).view(1, 1100, 2, 8).transpose(1, 2)
            for f in (layer.attention.query, layer.attention.key, layer.attention.value)
        )
        distance = torch.arange(1100)[:, None] - torch.arange(1100)
        bias = encoder.stack.positions.rows.weight[encoder.stack.positions.buckets(distance)].permute(2, 0, 1)
        mixed = ((q @ k.transpose(-1, -2)) / 8**0.5 + bias).softmax(-1) @ v
        mixed = layer.attention_output(mixed.transpose(1, 2).flatten(2))
        expected = layer.attention_norm(states + mixed)
        expected = layer.feed_forward_norm(expected + layer.feed_forward(expected))
    assert torch.allclose(got, expected, atol=1e-5)
    names = [name for name, _ in model.named_parameters() if "positions" in name]
    assert names == ["model.encoder.stack.positions.rows.weight"]

"""What every encoder-decoder of precis must satisfy. A model's own test module calls `check_seq2seq`."""

import tempfile
from collections.abc import Callable, Sequence

import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel

ATOL = 1e-5


def random_batch(
    model: PreTrainedModel, *, lengths: Sequence[int] = (17, 9, 23), target: int = 8, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Right-padded sources of different lengths and labels with ignored positions."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = model.config.vocab_size
    width = max(lengths)
    ids = torch.zeros(len(lengths), width, dtype=torch.long)
    mask = torch.zeros(len(lengths), width, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(5, vocabulary, (length,), generator=generator)
        mask[row, :length] = 1
    labels = torch.randint(5, vocabulary, (len(lengths), target), generator=generator)
    labels[1, 5:] = -100
    return ids, mask, labels


def check_seq2seq(make: Callable[[], PreTrainedModel]) -> None:
    """Run all checks on fresh models made by `make` (small, random, in eval mode)."""
    for check in (
        check_save_and_load,
        check_cached_equals_uncached,
        check_padding_changes_nothing,
        check_decoder_cannot_see_the_future,
        check_every_parameter_learns,
        check_gradient_checkpointing_changes_nothing,
        check_bfloat16,
        check_generation,
    ):
        check(make())


@torch.no_grad()
def check_save_and_load(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    expected = model(input_ids=ids, attention_mask=mask, labels=labels)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    assert type(again) is type(model)
    found = again(input_ids=ids, attention_mask=mask, labels=labels)
    assert torch.equal(found.logits, expected.logits)
    assert torch.equal(found.loss, expected.loss)


@torch.no_grad()
def check_cached_equals_uncached(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model, target=12)
    target = model.prepare_decoder_input_ids_from_labels(labels.clamp(min=0))
    full = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits
    encoded = model.get_encoder()(input_ids=ids, attention_mask=mask)
    cache, steps = None, []
    for span in (slice(0, 3), *(slice(i, i + 1) for i in range(3, 12))):  # a prefix at once, then one by one
        output = model(
            attention_mask=mask,
            encoder_outputs=encoded,
            decoder_input_ids=target[:, span],
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        steps.append(output.logits)
    torch.testing.assert_close(torch.cat(steps, 1), full, atol=ATOL, rtol=ATOL)


@torch.no_grad()
def check_padding_changes_nothing(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    labels = labels.clamp(min=5)
    together = model(input_ids=ids, attention_mask=mask, labels=labels).logits
    for row, length in enumerate(mask.sum(-1).tolist()):
        alone = model(input_ids=ids[row : row + 1, :length], labels=labels[row : row + 1]).logits
        torch.testing.assert_close(together[row : row + 1], alone, atol=ATOL, rtol=ATOL)
    wider = torch.nn.functional.pad(ids, (0, 11)), torch.nn.functional.pad(mask, (0, 11))
    padded = model(input_ids=wider[0], attention_mask=wider[1], labels=labels).logits
    torch.testing.assert_close(padded, together, atol=ATOL, rtol=ATOL)


@torch.no_grad()
def check_decoder_cannot_see_the_future(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    target = model.prepare_decoder_input_ids_from_labels(labels.clamp(min=5))
    changed = target.clone()
    changed[:, 5:] = (changed[:, 5:] + 7) % model.config.vocab_size
    first = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits
    second = model(input_ids=ids, attention_mask=mask, decoder_input_ids=changed).logits
    assert torch.equal(first[:, :5], second[:, :5])
    assert not torch.equal(first[:, 5:], second[:, 5:])


def check_every_parameter_learns(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    model.train()
    model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()]
    assert not silent, f"no gradient reaches {silent}"


def check_gradient_checkpointing_changes_nothing(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    gradients = []
    for enable in (False, True):
        if enable:
            model.gradient_checkpointing_enable()
        model.train()
        model.zero_grad()
        torch.manual_seed(5)
        model(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    # collators for label smoothing give the target as well, and then the cache is on by default
    target = model.prepare_decoder_input_ids_from_labels(labels)
    model(input_ids=ids, attention_mask=mask, decoder_input_ids=target, labels=labels).loss.backward()
    for plain, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(recomputed, plain, atol=1e-7, rtol=1e-5)


@torch.no_grad()
def check_bfloat16(model: PreTrainedModel) -> None:
    ids, mask, labels = random_batch(model)
    exact = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    half = model.to(torch.bfloat16)(input_ids=ids, attention_mask=mask, labels=labels).loss
    assert torch.isfinite(half)
    assert abs(float(half) - float(exact)) < 0.05 * float(exact)


@torch.no_grad()
def check_generation(model: PreTrainedModel) -> None:
    ids, mask, _ = random_batch(model)
    for beams in (1, 3):
        options = {"num_beams": beams, "max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False}
        cached = model.generate(input_ids=ids, attention_mask=mask, use_cache=True, **options)
        uncached = model.generate(input_ids=ids, attention_mask=mask, use_cache=False, **options)
        assert torch.equal(cached, uncached)
        static = model.generate(
            input_ids=ids, attention_mask=mask, cache_implementation="static", disable_compile=True, **options
        )
        assert torch.equal(cached, static)
        for row, length in enumerate(mask.sum(-1).tolist()):
            alone = model.generate(input_ids=ids[row : row + 1, :length], **options)
            assert torch.equal(alone[0], cached[row])

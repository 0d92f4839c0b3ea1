"""ProphetNet against a slow reference written from the paper's equations, and transformers' with copied weights.

The reference follows sections 2.3 and 2.4 state by state and head by head; where the paper is silent it does what the
released code does: logits of the predicting streams only, relative scores linear in the asking state, 16 exact buckets,
stream k starting from row k - 1 of the table, the first k guesses of a stream from the start token alone.

transformers computes the relative scores of the predicting streams wrongly when a target is longer than one token. Its
encoder, main stream and single cached steps are right, and equal ours; the rest is shown here to be wrong.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import ProphetNetConfig as TheirConfig
from transformers import ProphetNetForConditionalGeneration as Theirs

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import config_from_transformers, from_transformers

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def randomize(model: Any, *, seed: int = 0) -> Any:
    """Every weight large and different, norms and biases too, so that none can be left out unseen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            spread = 1.5 if "relative_pos" in name or "position_scores" in name else 0.35
            parameter.copy_(noise * spread if "norm.weight" not in name else 1 + 0.3 * noise)
    return model.eval()


def make(ngram: int, **changes: Any) -> ProphetNetForConditionalGeneration:
    shape = {
        "vocab_size": 23,
        "hidden_size": 12,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 17,
        "decoder_ffn_dim": 19,
        "max_position_embeddings": 140,
        **NO_DROPOUT,
        **changes,
    }
    return randomize(ProphetNetForConditionalGeneration(ProphetNetConfig(ngram=ngram, **shape)))


class SlowProphetNet:
    """One document and target at a time, in double precision."""

    def __init__(self, model: ProphetNetForConditionalGeneration) -> None:
        self.weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
        self.config = model.config

    def linear(self, name: str, state: torch.Tensor) -> torch.Tensor:
        return self.weights[f"{name}.weight"] @ state + self.weights[f"{name}.bias"]

    def each(self, name: str, states: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.stack([self.linear(name, state) for state in states])

    def norm(self, name: str, state: torch.Tensor) -> torch.Tensor:
        spread = ((state - state.mean()) ** 2).mean()
        normed = (state - state.mean()) / torch.sqrt(spread + 1e-5)
        return normed * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def feed_forward(self, name: str, state: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(f"{name}.up", state)
        return self.linear(f"{name}.down", 0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2))))

    def attention(
        self,
        name: str,
        asking: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        heads: int,
        position_scores: Sequence[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Eqs. 4-6: one query over keys and values that are projected already; position scores by (head, key)."""
        query = self.linear(f"{name}.query", asking)
        width = len(query) // heads
        mixed = []
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = keys[:, part] @ query[part] / math.sqrt(width)
            if position_scores is not None:
                scores = scores + position_scores[head]
            weights = torch.exp(scores - scores.max())
            mixed.append(weights / weights.sum() @ values[:, part])
        return self.linear(f"{name}.output", torch.cat(mixed))

    def bucket(self, distance: int) -> int:
        """T5's, for keys in the past: the first half exact, then logarithmic."""
        exact, buckets = self.config.decoder_buckets // 2, self.config.decoder_buckets
        distance = max(0, distance)
        if distance < exact:
            return distance
        share = math.log(distance / exact) / math.log(self.config.decoder_max_distance / exact)
        return min(buckets - 1, exact + int(share * (buckets - exact)))

    def encode(self, tokens: Sequence[int]) -> list[torch.Tensor]:
        """Eq. 1."""
        table = self.weights["model.encoder.tokens.weight"]
        places = self.weights["model.encoder.stack.positions.rows.weight"]
        states = [
            self.norm("model.encoder.stack.norm", table[token] + places[1 + i])
            for i, token in enumerate(tokens)
        ]
        for layer in range(self.config.encoder_layers):
            name = f"model.encoder.stack.layers.{layer}"
            keys = self.each(f"{name}.attention.key", states)
            values = self.each(f"{name}.attention.value", states)
            after = []
            for state in states:
                mixed = self.attention(
                    f"{name}.attention", state, keys, values, self.config.encoder_attention_heads
                )
                state = self.norm(f"{name}.attention_norm", state + mixed)
                after.append(
                    self.norm(
                        f"{name}.feed_forward_norm", state + self.feed_forward(f"{name}.feed_forward", state)
                    )
                )
            states = after
        return states

    def decode(
        self, tokens: Sequence[int], memory: Sequence[torch.Tensor], positions: Sequence[int] | None = None
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Logits by (stream, place), and the main states; `positions` are those of the tokens in their text."""
        positions = list(range(len(tokens))) if positions is None else positions
        table = self.weights["model.encoder.tokens.weight"]
        places = self.weights["model.decoder.positions.rows.weight"]
        streams = self.weights["model.decoder.streams.weight"]
        main = [
            self.norm("model.decoder.norm", table[token] + places[1 + p])
            for token, p in zip(tokens, positions, strict=True)
        ]
        predicting = [
            [self.norm("model.decoder.norm", streams[k - 1] + places[1 + p + 1]) for p in positions]
            for k in range(self.config.ngram)
        ]
        for layer in range(self.config.decoder_layers):
            main, predicting = self.decoder_layer(
                f"model.decoder.layers.{layer}", main, predicting, memory, positions
            )
        return torch.stack([torch.stack([table @ state for state in row]) for row in predicting]), main

    def decoder_layer(
        self,
        name: str,
        main: list[torch.Tensor],
        predicting: list[list[torch.Tensor]],
        memory: Sequence[torch.Tensor],
        positions: Sequence[int],
    ) -> tuple[list[torch.Tensor], list[list[torch.Tensor]]]:
        keys = self.each(f"{name}.self_attention.key", main)
        values = self.each(f"{name}.self_attention.value", main)
        source = self.each(f"{name}.cross_attention.key", memory)
        content = self.each(f"{name}.cross_attention.value", memory)

        def step(
            state: torch.Tensor, seen: int, own: Sequence[torch.Tensor], distances: Sequence[int]
        ) -> torch.Tensor:
            """One state: it sees the main keys before `seen`, and those of the states `own`."""
            mixed = self.attention(
                f"{name}.self_attention",
                state,
                torch.cat([keys[:seen], *(self.each(f"{name}.self_attention.key", [g]) for g in own)]),
                torch.cat([values[:seen], *(self.each(f"{name}.self_attention.value", [g]) for g in own)]),
                self.config.decoder_attention_heads,
                self.position_scores(name, state, distances),
            )
            state = self.norm(f"{name}.self_norm", state + mixed)
            crossed = self.attention(
                f"{name}.cross_attention", state, source, content, self.config.decoder_attention_heads
            )
            state = self.norm(f"{name}.cross_norm", state + crossed)
            return self.norm(
                f"{name}.feed_forward_norm", state + self.feed_forward(f"{name}.feed_forward", state)
            )

        after_main = []
        for i, state in enumerate(main):  # Eq. 7
            distances = [positions[i] - positions[j] for j in range(i + 1)]
            after_main.append(step(state, i + 1, [], distances))
        after: list[Any] = []
        for k, row in enumerate(predicting):  # Eqs. 8, 9
            after.append([])
            for i, state in enumerate(row):
                seen = max(0, i - k) + 1
                # the state stands at the token that it predicts, one after that of its place; its own key is there too
                distances = [positions[i] + 1 - positions[j] for j in range(seen)] + [0]
                after[-1].append(step(state, seen, [state], distances))
        return after_main, after

    def position_scores(self, name: str, state: torch.Tensor, distances: Sequence[int]) -> list[torch.Tensor]:
        heads = self.config.decoder_attention_heads
        by_bucket = self.linear(
            f"{name}.position_scores", state
        )  # bucket by bucket, the heads of each together
        return [by_bucket[[self.bucket(d) * heads + head for d in distances]] for head in range(heads)]


def batch(
    model: ProphetNetForConditionalGeneration, length: int, *, seed: int = 1, sources: Sequence[int] = (7, 4)
) -> dict[str, torch.Tensor]:
    """Padded sources and targets of one length."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.zeros(len(sources), max(sources), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, size in enumerate(sources):
        ids[row, :size] = torch.randint(3, model.config.vocab_size, (size,), generator=generator)
        mask[row, :size] = 1
    target = torch.randint(3, model.config.vocab_size, (len(sources), length), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": target}


def slow_logits(
    model: ProphetNetForConditionalGeneration,
    inputs: dict[str, torch.Tensor],
    positions: torch.Tensor | None = None,
    *,
    rows: Sequence[int] = (0, 1),
) -> torch.Tensor:
    """(b n t v) by the reference, for some rows of the batch."""
    slow = SlowProphetNet(model)
    found = []
    for row in rows:
        ids = inputs["input_ids"][row, : int(inputs["attention_mask"][row].sum())]
        place = None if positions is None else positions[row].tolist()
        found.append(
            slow.decode(inputs["decoder_input_ids"][row].tolist(), slow.encode(ids.tolist()), place)[0]
        )
    return torch.stack(found).float()


@torch.no_grad()
def check_against_the_equations(
    ngram: int, length: int, *, rows: Sequence[int] = (0, 1), **changes: Any
) -> None:
    model = make(ngram, **changes)
    inputs = batch(model, length)
    found = model(**inputs, all_streams=True)
    assert found.future_logits.shape == (2, ngram, length, model.config.vocab_size)
    expected = slow_logits(model, inputs, rows=rows)
    torch.testing.assert_close(found.future_logits[list(rows)], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.logits[list(rows)], expected[:, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("ngram", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 10])
def test_eq4_to_eq9_logits_of_every_stream_equal_the_equations(ngram: int, length: int) -> None:
    check_against_the_equations(ngram, length)


@pytest.mark.parametrize(
    "ngram", [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow), 3]
)
def test_eq4_to_eq9_logits_of_every_stream_equal_the_equations_beyond_the_last_bucket(ngram: int) -> None:
    """One decoder layer, one row of the batch, whose source is padded: the reference takes its time."""
    check_against_the_equations(ngram, 128, rows=(1,), encoder_layers=1, decoder_layers=1)


@pytest.mark.parametrize("ngram", [2, 3])
def test_other_buckets_equal_the_equations(ngram: int) -> None:
    check_against_the_equations(ngram, 11, rows=(1,), decoder_buckets=6, decoder_max_distance=7)


@torch.no_grad()
def test_eq1_encoder_states_equal_the_equations_at_real_tokens() -> None:
    model = make(2)
    inputs = batch(model, 1, sources=(40, 11))
    found = model.get_encoder()(inputs["input_ids"], inputs["attention_mask"]).last_hidden_state
    for row, size in enumerate((40, 11)):
        expected = torch.stack(SlowProphetNet(model).encode(inputs["input_ids"][row, :size].tolist()))
        torch.testing.assert_close(found[row, :size], expected.float(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("ngram", [1, 2, 3])
@torch.no_grad()
def test_spans_of_a_longer_text_keep_their_places_in_it(ngram: int) -> None:
    """Section 2.4: absolute and relative positions are those of the original text, gaps between spans included."""
    model = make(ngram)
    inputs = batch(model, 9)
    positions = torch.tensor([[3, 4, 5, 6, 60, 61, 62, 130, 131], [0, 1, 2, 20, 21, 22, 23, 24, 90]])
    found = model(**inputs, all_streams=True, decoder_position_ids=positions).future_logits
    expected = slow_logits(model, inputs, positions)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    plain = model(**inputs, all_streams=True).future_logits
    assert (plain - found).abs().max() > 0.1
    counted = torch.arange(9).expand(2, -1)
    same = model(**inputs, all_streams=True, decoder_position_ids=counted).future_logits
    torch.testing.assert_close(same, plain, atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_cached_steps_of_every_stream_equal_the_equations() -> None:
    model = make(3)
    inputs = batch(model, 12)
    expected = slow_logits(model, inputs)
    encoded = model.get_encoder()(inputs["input_ids"], inputs["attention_mask"])
    cache, found = None, []
    for span in (slice(0, 5), *(slice(i, i + 1) for i in range(5, 12))):
        step = model(
            encoder_outputs=encoded,
            attention_mask=inputs["attention_mask"],
            decoder_input_ids=inputs["decoder_input_ids"][:, span],
            past_key_values=cache,
            all_streams=True,
            use_cache=True,
        )
        cache = step.past_key_values
        found.append(step.future_logits)
    torch.testing.assert_close(torch.cat(found, dim=2), expected, atol=1e-5, rtol=1e-5)


# --- transformers


def make_pair(
    ngram: int = 2, *, positions: int = 40, **changes: Any
) -> tuple[Any, ProphetNetForConditionalGeneration]:
    """transformers' model and ours with the same random weights."""
    theirs = randomize(
        Theirs(
            TheirConfig(
                vocab_size=23,
                hidden_size=12,
                num_encoder_layers=2,
                num_decoder_layers=2,
                num_encoder_attention_heads=3,
                num_decoder_attention_heads=2,
                encoder_ffn_dim=17,
                decoder_ffn_dim=19,
                max_position_embeddings=positions,
                num_buckets=8,
                relative_max_distance=12,
                ngram=ngram,
                decoder_start_token_id=2,
                **NO_DROPOUT,
                **changes,
            )
        )
    )
    ours = ProphetNetForConditionalGeneration(config_from_transformers(theirs.config.to_dict()))
    state = {**theirs.state_dict(), "lm_head.weight": theirs.prophetnet.word_embeddings.weight}
    ours.load_state_dict(from_transformers(state))
    return theirs, ours.eval()


def their_steps(theirs: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """(b t v) logits of transformers' cached decoding, one token at a time."""
    encoded = theirs.get_encoder()(inputs["input_ids"], inputs["attention_mask"])
    cache, found = None, []
    for i in range(inputs["decoder_input_ids"].shape[1]):
        step = theirs(
            encoder_outputs=encoded,
            attention_mask=inputs["attention_mask"],
            decoder_input_ids=inputs["decoder_input_ids"][:, i : i + 1],
            past_key_values=cache,
            use_cache=True,
        )
        cache = step.past_key_values
        found.append(step.logits)
    return torch.cat(found, dim=1)


@torch.no_grad()
def test_encoder_equals_transformers() -> None:
    theirs, ours = make_pair()
    inputs = batch(ours, 1, sources=(30, 12))
    given = (inputs["input_ids"], inputs["attention_mask"])
    expected, found = theirs.get_encoder()(*given), ours.get_encoder()(*given)
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(
        found.last_hidden_state[real], expected.last_hidden_state[real], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("ngram", [1, 2, 3])
@torch.no_grad()
def test_main_stream_equals_transformers(ngram: int) -> None:
    theirs, ours = make_pair(ngram)
    inputs = batch(ours, 25)
    expected = theirs(**inputs, output_hidden_states=True, use_cache=False).decoder_hidden_states
    found = ours(**inputs, output_hidden_states=True, all_streams=True).decoder_hidden_states
    assert len(found) == len(expected) == 3
    for layer, other in zip(found, expected, strict=True):
        torch.testing.assert_close(layer, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("ngram", [1, 2, 3])
@torch.no_grad()
def test_teacher_forcing_equals_single_cached_steps_of_transformers(ngram: int) -> None:
    theirs, ours = make_pair(ngram)
    inputs = batch(ours, 25)
    found = ours(**inputs).logits
    torch.testing.assert_close(found, their_steps(theirs, inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beams", [1, 4])
def test_generated_text_equals_transformers(beams: int) -> None:
    theirs, ours = make_pair()
    inputs = {name: tensor for name, tensor in batch(ours, 1).items() if name != "decoder_input_ids"}
    options = {"num_beams": beams, "max_new_tokens": 12, "do_sample": False, "no_repeat_ngram_size": 3}
    found, expected = ours.generate(**inputs, **options), theirs.generate(**inputs, **options)
    assert torch.equal(found, expected)
    assert len(found.unique()) > 3


@torch.no_grad()
def test_transformers_trains_another_function_than_it_decodes() -> None:
    """Its teacher-forced logits and its own cached steps disagree; ours agree with the steps."""
    theirs, ours = make_pair()
    inputs = batch(ours, 25)
    steps, forced = their_steps(theirs, inputs), theirs(**inputs, use_cache=False).logits
    assert (steps - forced).abs().max() > 0.1
    assert (steps - ours(**inputs).logits).abs().max() < 1e-5


@torch.no_grad()
def test_transformers_mixes_up_the_scores_of_the_predicting_streams() -> None:
    """A known defect (up to 5.23): asking states are laid out (batch, place, stream, head), buckets (stream, batch,
    head, place), and the result is read as (batch, stream, head, place).
    """
    theirs, ours = make_pair()
    length, width = 25, ours.config.hidden_size
    attention = theirs.prophetnet.decoder.layers[0].self_attn
    positions = torch.arange(1, length + 1)[None]
    _, buckets = theirs.prophetnet.decoder.compute_buffered_relative_buckets(positions.expand(2, -1))
    states = torch.randn(2, length, 2, width, generator=torch.Generator().manual_seed(0))  # (b t n d)
    shape = torch.empty(2, 2, 2, length, 2 * length)  # (b n h t j)
    scores = attention.get_predict_relative_pos_embeddings(states, shape, positions, buckets)
    slow = SlowProphetNet(ours)
    right = torch.zeros_like(scores, dtype=torch.bool)
    for b in range(2):
        for n in range(2):
            for i in range(length):
                state = states[b, i, n].double()
                distances = [i + 1 - j for j in range(length)] + [i - j for j in range(length)]
                wanted = torch.stack(slow.position_scores("model.decoder.layers.0", state, distances))
                right[b, n, :, i] = (scores[b, n, :, i] - wanted).abs() < 1e-5
    allowed = torch.cat([torch.ones(length, length).tril(), torch.eye(length)], dim=1).bool()
    share = right[..., allowed].float().mean()
    assert 0 < share < 0.1


@torch.no_grad()
def test_transformers_has_no_positions_for_the_longest_targets_and_we_say_so() -> None:
    theirs, ours = make_pair(positions=40)
    encoded = {name: tensor for name, tensor in batch(ours, 1).items() if name != "decoder_input_ids"}
    fits, too_long = torch.ones(2, 38, dtype=torch.long), torch.ones(2, 39, dtype=torch.long)
    assert ours(**encoded, decoder_input_ids=fits, all_streams=True).future_logits.isfinite().all()
    with pytest.raises(IndexError):
        theirs(**encoded, decoder_input_ids=too_long, use_cache=False)
    with pytest.raises(ValueError, match="39 target tokens: this model has positions for 38"):
        ours(**encoded, decoder_input_ids=too_long)

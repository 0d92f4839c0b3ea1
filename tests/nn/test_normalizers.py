"""Softmax, TruncSA (Eq. 2) and SoftSA (Eq. 3)."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from precis.nn.attention import attend
from precis.nn.normalizers import Bound, Gumbel, Softmax, TopP
from precis_text.errors import UserError

LOWEST = torch.finfo(torch.float32).min


def random_scores(
    *, batch: int = 2, heads: int = 3, queries: int = 6, keys: int = 9, seed: int = 0
) -> torch.Tensor:
    return 2 * torch.randn(batch, heads, queries, keys, generator=torch.Generator().manual_seed(seed))


def kept_by_hand(weights: list[list[float]], mass: float, temperature: float = 1.0) -> set[int]:
    """Eq. 2 with loops, one head: columns of the nucleus of the summed and normalised weights."""
    sums = [float(sum(row[n] for row in weights)) ** (1 / temperature) for n in range(len(weights[0]))]
    shares = [s / sum(sums) for s in sums]
    kept, reached = set(), 0.0
    for n in sorted(range(len(shares)), key=lambda n: -shares[n]):
        if reached >= mass:
            break
        kept.add(n)
        reached += shares[n]
    return kept


@pytest.mark.parametrize("mass", [0.3, 0.8, 0.95])
def test_eq2_keeps_the_nucleus_of_summed_column_mass_and_nothing_else(mass: float) -> None:
    check_columns(TopP(mass=mass), lambda weights: kept_by_hand(weights, mass))


@pytest.mark.parametrize("temperature", [0.1, 0.5, 3.0])
def test_a_temperature_sharpens_what_top_p_counts_and_leaves_the_weights_as_they_are(
    temperature: float,
) -> None:
    normalize = TopP(mass=0.8, temperature=temperature)
    check_columns(normalize, lambda weights: kept_by_hand(weights, 0.8, temperature))


def check_columns(normalize: TopP, kept_of: Callable[[list[list[float]]], set[int]]) -> None:
    """Kept columns are those of softmax, the others are zero."""
    scores = random_scores()
    dense, sparse = torch.softmax(scores, -1), normalize(scores)
    for b in range(2):
        for h in range(3):
            kept = kept_of(dense[b, h].double().tolist())
            for n in range(9):
                expected = dense[b, h, :, n] if n in kept else torch.zeros(6)
                assert torch.equal(sparse[b, h, :, n], expected)


def test_the_lower_the_temperature_the_fewer_keys_top_p_keeps() -> None:
    scores = random_scores()
    kept = [int((TopP(mass=0.8, temperature=t)(scores) > 0).sum()) for t in (0.1, 0.5, 1.0, 3.0)]
    assert kept == sorted(kept)
    assert kept[0] < kept[2] < kept[3]


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_top_p_of_mass_1_is_dense_exactly(temperature: float) -> None:
    scores = random_scores()
    assert torch.equal(TopP(mass=1.0, temperature=temperature)(scores), torch.softmax(scores, -1))


def test_top_p_sums_to_less_than_one_unless_asked_to_renormalize() -> None:
    scores = random_scores()
    assert float(TopP(mass=0.5)(scores).sum(-1).max()) < 0.999
    whole = TopP(mass=0.5, renormalize=True)(scores).sum(-1)
    torch.testing.assert_close(whole, torch.ones_like(whole))


def test_padded_queries_have_no_say_in_what_top_p_keeps() -> None:
    scores = random_scores(queries=9)
    valid = torch.arange(9) < torch.tensor([[9], [5]])
    mask = valid[:, None, None, :]
    scores = scores.masked_fill(~mask, LOWEST)
    normalize = TopP(mass=0.6).bound(mask=mask, training=False)
    padded = normalize(scores)
    alone = TopP(mass=0.6)(scores[1:, :, :5, :5])
    torch.testing.assert_close(padded[1:, :, :5, :5], alone, atol=1e-7, rtol=1e-6)
    changed = scores.clone()
    changed[1, :, 5:, 0] += 50.0  # what a padded query looks at
    assert torch.equal(normalize(changed)[1, :, :5], padded[1, :, :5])


def test_top_p_gets_all_queries_at_once_however_long_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    from precis.nn import attention

    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 40, 8, generator=generator) for _ in range(3))
    expected = attend(q, k, v, normalize=TopP(mass=0.5))
    monkeypatch.setattr(attention, "_BLOCK_FROM", 16)
    assert torch.equal(attend(q, k, v, normalize=TopP(mass=0.5)), expected)


def test_gumbel_without_noise_and_with_temperature_1_is_softmax() -> None:
    scores = random_scores()
    assert torch.equal(Gumbel(temperature=1.0)(scores), Softmax()(scores))


def test_eq3_temperature_divides_scores_and_noise() -> None:
    scores = random_scores()
    torch.testing.assert_close(Gumbel(temperature=0.1)(scores), torch.softmax(scores / 0.1, -1))
    torch.manual_seed(3)
    drawn = Gumbel(temperature=0.5)(scores, training=True)
    torch.manual_seed(3)
    noise = -torch.empty_like(scores).exponential_().log()
    torch.testing.assert_close(drawn, torch.softmax((scores + noise) / 0.5, -1), atol=1e-6, rtol=1e-5)


def test_gumbel_noise_is_drawn_in_training_only() -> None:
    scores = random_scores()
    normalize = Gumbel(temperature=0.5)
    assert torch.equal(normalize(scores), normalize(scores))
    assert not torch.equal(normalize(scores, training=True), normalize(scores, training=True))


def test_gumbel_at_a_low_temperature_samples_from_softmax() -> None:
    scores = torch.tensor([0.0, 1.0, 2.0]).expand(1, 1, 20_000, 3)
    torch.manual_seed(0)
    drawn = Gumbel(temperature=0.01)(scores, training=True).argmax(-1).flatten()
    found = torch.bincount(drawn, minlength=3) / 20_000
    torch.testing.assert_close(found, torch.softmax(torch.tensor([0.0, 1.0, 2.0]), -1), atol=0.015, rtol=0)


@pytest.mark.parametrize(
    "normalize", [Softmax(), TopP(mass=0.7), TopP(mass=0.7, temperature=10.0), Gumbel(temperature=0.01)]
)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_forbidden_keys_get_nothing_and_nothing_is_nan(
    normalize: Softmax | TopP | Gumbel, training: bool, dtype: torch.dtype
) -> None:
    scores = random_scores().to(dtype)
    scores[..., 4:] = torch.finfo(dtype).min
    scores[0, 0, 0] = torch.finfo(dtype).min  # a query that may attend nowhere
    scores.requires_grad_()
    weights = normalize(scores, training=training)
    weights.float().square().sum().backward()
    assert torch.isfinite(weights).all()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()
    assert weights.dtype == dtype
    assert not weights[1, ..., 4:].any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TopP(mass=0.0), "mass=0.0"),
        (lambda: TopP(mass=1.2), "mass=1.2"),
        (lambda: TopP(temperature=0.0), "temperature=0.0"),
        (lambda: TopP(temperature=float("inf")), "temperature=inf"),
        (lambda: Gumbel(temperature=0.0), "temperature=0.0"),
        (lambda: Gumbel(temperature=float("inf")), "temperature=inf"),
    ],
)
def test_a_value_out_of_range_is_refused_in_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_settings_survive_json() -> None:
    assert TopP.from_dict(TopP(mass=0.5, renormalize=True).to_dict()) == TopP(mass=0.5, renormalize=True)
    assert TopP.from_dict({"mass": 0.5, "renormalize": False}) == TopP(
        mass=0.5
    )  # an adapter without a temperature


def bound(normalize: Any, mask: torch.Tensor | None, *, training: bool = False) -> Bound:
    found = normalize.bound(mask=mask, training=training)
    assert isinstance(found, Bound)
    return found


def test_only_a_mask_of_keys_says_which_queries_are_real() -> None:
    """A mask with rows, such as a causal one, allows each query other keys."""
    keys = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    found = bound(TopP(mass=0.5), keys)
    assert found.queries is not None
    assert torch.equal(found.queries, keys.transpose(-1, -2))
    causal = torch.ones(3, 3, dtype=torch.bool).tril().view(1, 1, 3, 3)
    for mask in (causal, causal.expand(2, 4, 3, 3), None):
        assert bound(TopP(mass=0.5), mask).queries is None
    assert Softmax().bound(mask=keys, training=False) == Softmax()
    for training in (True, False):
        assert bound(Gumbel(temperature=0.5), keys, training=training).training == training

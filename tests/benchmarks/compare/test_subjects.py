"""What `benchmarks.compare` measures: every contender runs, and compares the same function."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.compare import attention, busy, decode, encoder, fie, prophetnet, train, tune
from benchmarks.compare.comparisons import Figure
from benchmarks.compare.contenders import KEEP_BLOCKS
from benchmarks.compare.kernel import OURS
from benchmarks.compare.peers import NAMES, Size, build, states_of
from precis.nn import packing
from precis.nn.disentangled.cpp_loader import COMPILE
from precis.recipes.run_plan import ZCodePPShape


@pytest.mark.parametrize("backward", [False, True])
def test_ours_and_transformers_attention_compute_the_same(backward: bool) -> None:
    ours, theirs = (
        make(tokens=40, batch=2, backward=backward)() for make in (attention.ours, attention.deberta)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_encoder_gives_states(name: str) -> None:
    ids = torch.randint(4, 100, (1, 40))
    encoder_of_peer = build(name, Size(width=16, layers=1, heads=2, positions=1024)).eval()
    assert states_of(encoder_of_peer, ids, None).shape[-1] == 16


@pytest.mark.parametrize("subject", [attention, encoder, fie, train, tune])
@pytest.mark.parametrize("quick", [True, False])
def test_comparisons_name_cells_and_contenders_that_exist(subject: ModuleType, quick: bool) -> None:
    planned = subject.bench(quick=quick)
    cells = {cell.name for cell in planned.cells}
    names = {contender.name for contender in planned.contenders}
    assert all(c.cell in cells and {c.ours, c.theirs} <= names for c in planned.comparisons)
    assert len({c.name for c in planned.comparisons}) == len(planned.comparisons)
    assert all(skipped in cells for contender in planned.contenders for skipped in contender.skip)


SUBJECTS = [attention, busy, decode, encoder, fie, prophetnet, train, tune]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_quick_run_measures_no_memory_and_its_names_mean_what_those_of_a_whole_run_mean(
    subject: ModuleType,
) -> None:
    quick, whole = subject.bench(quick=True), subject.bench(quick=False)
    assert (quick.settings.memory, whole.settings.memory) == (False, True)
    arguments = {cell.name: cell.arguments for cell in whole.cells}
    assert all(arguments.get(cell.name, cell.arguments) == cell.arguments for cell in quick.cells)


@pytest.mark.parametrize(
    ("subject", "wanted"), [(attention, (1.0,)), (encoder, (1.0,)), (fie, ()), (train, ())]
)
def test_the_peer_with_blocks_kept_is_one_that_ours_are_not_slower_than_or_for_information(
    subject: ModuleType, wanted: tuple[float, ...]
) -> None:
    planned = subject.bench(quick=False)
    kept = [contender for contender in planned.contenders if contender.name.endswith(", blocks kept")]
    assert kept
    assert all(contender.environment == KEEP_BLOCKS for contender in kept)
    goals = [c.goals for c in planned.comparisons if c.theirs in {contender.name for contender in kept}]
    assert set(goals) == {wanted}


@pytest.mark.parametrize("subject", [attention, encoder, fie, train])
@pytest.mark.parametrize("quick", [True, False])
def test_ours_plays_as_it_is_installed_and_without_the_kernel(subject: ModuleType, quick: bool) -> None:
    """And `square products`, which counts operations into which the kernel would not let it look."""
    planned = subject.bench(quick=quick)
    environments = {contender.name: contender.environment for contender in planned.contenders}
    assert environments[OURS[0]] == {}
    without = {name for name, variables in environments.items() if COMPILE in variables}
    assert {name for name in environments if name.endswith(", no kernel")} == without - {"square products"}
    assert all(environments[name] == {COMPILE: "0"} for name in without)
    assert ("square products" in without) == (subject is train)


@pytest.mark.parametrize("subject", [attention, encoder])
def test_ours_is_never_to_be_slower_than_transformers_from_64_tokens_on(subject: ModuleType) -> None:
    planned = subject.bench(quick=True)
    times = [
        c for c in planned.comparisons if c.figure is Figure.time and c.theirs.startswith("transformers")
    ]
    assert {(c.ours, c.theirs) for c in times} == {
        (ours, theirs) for ours in OURS for theirs in ("transformers", "transformers, blocks kept")
    }
    assert all(c.goal == 1.0 for c in times)
    assert min(cell.arguments["tokens"] for cell in planned.cells if "tokens" in cell.arguments) == 64


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("quick", [True, False])
def test_no_comparison_asks_for_what_a_contender_sits_out(subject: ModuleType, quick: bool) -> None:
    planned = subject.bench(quick=quick)
    skipped = {(c.name, cell) for c in planned.contenders for cell in c.skip}
    asked = {(name, c.cell) for c in planned.comparisons for name in (c.ours, c.theirs)}
    assert not skipped & asked


def test_attention_keeps_its_goals_of_memory_and_of_growth() -> None:
    planned = attention.bench(quick=False)
    wanted = {c.cell: c.goal for c in planned.comparisons if c.figure is Figure.tensors and c.goal}
    assert wanted == {"forward 4096": 14.0, "forward+backward 2048": 10.0, "forward+backward 4096": 10.0}
    cells = {cell.name for cell in planned.cells}
    long = planned.long
    assert long is not None
    assert {long.shorter, long.longer} <= cells
    playing = {c.name for c in planned.contenders if long.longer not in c.skip}
    assert playing == {long.theirs, *long.ours}


def test_the_padded_batch_has_samsums_lengths() -> None:
    ids, mask = encoder.samsum_batch(16)
    lengths = mask.sum(1)
    assert lengths.max() > 2.5 * lengths.float().median()
    assert not ids[mask == 0].any()


@pytest.mark.parametrize(
    ("make", "trained"),
    [
        (lambda: tune.fine_tuning(rows=2, source_tokens=6, columns=4), {"base"}),
        (lambda: tune.prefix(name="prefix", rows=2, source_tokens=6, columns=4), {"prefix"}),
        (lambda: tune.prefix(name="hierblock+softsa", rows=2, source_tokens=6, columns=4), {"prefix"}),
        (
            lambda: tune.prefix(name="prefix", sites=["decoder"], rows=2, source_tokens=6, columns=4),
            {"prefix"},
        ),
    ],
)
def test_a_tuning_step_changes_what_it_says(
    make: Callable[..., Callable[[], Any]], trained: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in {"_WIDTH": 16, "_HEADS": 2, "_INNER": 16, "_LAYERS": 2, "_VOCABULARY": 40}.items():
        monkeypatch.setattr(tune, name, size)
    built = []
    bart = tune._bart
    monkeypatch.setattr(tune, "_bart", lambda: built.append(bart()) or built[0])  # type: ignore[func-returns-value]
    step = make()
    (model,) = built
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    step()
    changed = {
        "prefix" if "prefix" in name else "base"
        for name, parameter in model.named_parameters()
        if not torch.equal(parameter, before[name])
    }
    assert changed == trained


@pytest.fixture
def tiny_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model, a batch and square products that take no time."""
    whole = train.recipe("zcodepp-mini")  # type: ignore[attr-defined]
    assert isinstance(whole.model, ZCodePPShape)
    shape = replace(
        whole.model, vocab_size=40, hidden_size=16, num_attention_heads=2, encoder_layers=1, decoder_layers=1
    )
    monkeypatch.setattr(train, "recipe", lambda _: replace(whole, model=shape))
    monkeypatch.setattr(train, "samsum_batch", short_batch)
    monkeypatch.setattr(train, "_SIDE", 16)
    monkeypatch.setattr(packing, "WASTE", packing.WASTE)


def short_batch(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    mask = (torch.arange(30)[None] < 3 * torch.arange(1, rows + 1)[:, None]).long()
    return torch.randint(4, 40, mask.shape, generator=torch.Generator().manual_seed(0)) * mask, mask


@pytest.mark.usefixtures("tiny_training")
@pytest.mark.parametrize("make", [train.ours, train.padded, train.deberta])
@pytest.mark.parametrize("tokens", [12, None])
def test_a_training_step_learns(make: Callable[..., Callable[[], Any]], tokens: int | None) -> None:
    step = make(rows=4, tokens=tokens)
    first = step()
    for _ in range(5):
        last = step()
    assert last < first


@pytest.mark.usefixtures("tiny_training")
def test_padding_changes_the_work_of_a_training_step_and_not_its_loss() -> None:
    packed_loss = train.ours(rows=4, tokens=None)()
    assert train.padded(rows=4, tokens=None)() == pytest.approx(packed_loss, abs=1e-5)


@pytest.mark.usefixtures("tiny_training")
def test_the_encoder_of_the_peer_is_trained_and_ours_is_not_called() -> None:
    model = train.WithDeberta(train._model())
    loss = model(**train._batch(2, 12)).loss
    loss.backward()
    assert all(p.grad is not None for p in model.encoder.encoder.layer.parameters())
    assert not [name for name, _ in model.decoder.model.encoder.named_parameters() if "stack" in name]


def test_tokens_of_a_training_step_leave_padding_out() -> None:
    full, samsum = train.bench(quick=True).cells
    ids, mask = encoder.samsum_batch(8)
    assert full.tokens == 2 * (512 + 64)
    assert samsum.tokens == int(mask.sum()) + 8 * 64 < ids.numel() + 8 * 64


@pytest.mark.usefixtures("tiny_training")
def test_square_products_do_a_steps_operations() -> None:
    step, products = train.ours(rows=2, tokens=12), train.square_products(rows=2, tokens=12)
    counts = []
    for work in (step, products):
        with FlopCounterMode(display=False) as counter:
            work()
        counts.append(counter.get_total_flops())
    assert counts[1] == pytest.approx(counts[0], rel=0.01)

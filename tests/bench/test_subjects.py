"""What `precis bench` measures: every contender runs, and compares the same function."""

import pytest
import torch

from precis.bench import attention, encoder, fie, tune
from precis.bench.peers import NAMES, Size, build, states_of


@pytest.mark.parametrize("backward", [False, True])
def test_ours_and_transformers_attention_compute_the_same(backward):
    ours, theirs = (
        make(tokens=40, batch=2, backward=backward)() for make in (attention.ours, attention.deberta)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_encoder_gives_states(name):
    ids = torch.randint(4, 100, (1, 40))
    encoder_of_peer = build(name, Size(width=16, layers=1, heads=2, positions=1024)).eval()
    assert states_of(encoder_of_peer, ids, None).shape[-1] == 16


@pytest.mark.parametrize("subject", [attention, encoder, fie, tune])
@pytest.mark.parametrize("quick", [True, False])
def test_comparisons_name_cells_and_contenders_that_exist(subject, quick):
    planned = subject.bench(quick=quick)
    cells = {cell.name for cell in planned.cells}
    names = {contender.name for contender in planned.contenders}
    assert all(c.cell in cells and {c.ours, c.theirs} <= names for c in planned.comparisons)
    assert len({c.name for c in planned.comparisons}) == len(planned.comparisons)
    assert all(skipped in cells for contender in planned.contenders for skipped in contender.skip)


def test_the_padded_batch_has_samsums_lengths():
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
    ],
)
def test_a_tuning_step_changes_what_it_says(make, trained, monkeypatch):
    for name, size in {"_WIDTH": 16, "_HEADS": 2, "_INNER": 16, "_LAYERS": 2, "_VOCABULARY": 40}.items():
        monkeypatch.setattr(tune, name, size)
    built = []
    bart = tune._bart
    monkeypatch.setattr(tune, "_bart", lambda: built.append(bart()) or built[0])
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

"""Seeds are a pure function of the place in a run, and neighbouring places are unrelated."""

import itertools

import torch

from precis.training.randomness import mixed_seed, seed_position


def test_no_two_places_share_a_seed() -> None:
    places = list(itertools.product(range(3), range(200), range(4), range(4)))

    seeds = {mixed_seed(*place) for place in places}

    assert len(seeds) == len(places)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_order_of_the_numbers_matters_and_negative_ones_are_allowed() -> None:
    assert (
        len(
            {
                mixed_seed(1, 2),
                mixed_seed(2, 1),
                mixed_seed(1, 2, 0),
                mixed_seed(-1, 2),
                mixed_seed(2**70 + 5, 2),
            }
        )
        == 5
    )


def test_seeds_never_change_between_versions() -> None:
    """A changed seed would change every resumed curve: this value is part of the checkpoint format."""
    assert mixed_seed(0, 0, 0, 0) == 1195769770526638388
    assert mixed_seed(1, 2, 3, 4) == 1852695968745914623


def test_the_same_place_draws_the_same_numbers_whatever_came_before() -> None:
    draws = []
    for disturbance in (0, 5):
        torch.rand(disturbance)
        seed_position(seed=3, step=7, rank=0, micro_batch=1)
        draws.append(torch.rand(4))

    assert torch.equal(draws[0], draws[1])

"""A short form of `python -m faults.service.refusals`."""

import pytest

from faults.service.refusals import Excess, excesses, refuse
from tests.server_of_tests import Running


@pytest.mark.parametrize("excess", list(excesses("tiny")), ids=lambda excess: excess.name)
def test_what_is_far_too_much_is_refused(service: Running, excess: Excess) -> None:
    status, seconds = refuse(service.port, excess)
    assert status == excess.status
    assert seconds < 5  # the benchmark has the limit of 100 ms

"""A short form of `python -m faults.service.fuzz`."""

import pytest

from faults.service.fuzz import fuzz
from tests.server_of_tests import Running


@pytest.mark.long
def test_requests_made_from_the_schema_never_break_it(service: Running) -> None:
    counts = fuzz(service.url, cases=120, seed=3)
    assert sum(counts.values()) >= 60
    assert counts["/v1/summarize", 200] > 0  # it gets as far as the model

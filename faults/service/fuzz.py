"""Requests that schemathesis makes from the service's own schema: `python -m faults.service.fuzz`.

Half follow the schema and half break it. None may be answered by a status of 500.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode

from benchmarks.service.load import start


def fuzz(url: str, *, cases: int, seed: int) -> Counter[tuple[str, int]]:
    """Send about `cases` requests to a service, and count the answers by path and status.

    Raises:
        AssertionError: a status of 500 or more, but 503, came.
    """
    counts: Counter[tuple[str, int]] = Counter()
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]  # of a sound schema
    ways = [
        (operation, mode)
        for operation in operations
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        if operation.method.upper() == "POST"
    ]
    asked = [
        (operation, GenerationMode.POSITIVE) for operation in operations if operation.method.upper() != "POST"
    ]

    def run(operation: Any, mode: GenerationMode, most: int) -> None:
        @seeded(seed)
        @settings(
            max_examples=most,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if mode is GenerationMode.POSITIVE and isinstance(case.body, dict) and "model" in case.body:
                case.body["model"] = "default"  # another name is refused before anything else is looked at
            answer = case.call(base_url=url)
            counts[case.path, answer.status_code] += 1
            assert answer.status_code < 500 or answer.status_code == 503, case.as_curl_command()

        one()

    for operation, mode in asked:
        run(operation, mode, 1)
    for operation, mode in ways:
        run(operation, mode, max(1, -(-(cases - len(asked)) // len(ways))))
    return counts


def main() -> int:
    """Parse, load the default model, and fuzz it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from precis.generation.model_location import default_model

    process, url = start(str(default_model()), "precis", 1)
    try:
        counts = fuzz(url, cases=options.cases, seed=options.seed)
    finally:
        process.terminate()
        process.wait(60)
    for (path, status), count in sorted(counts.items()):
        print(f"{count:6,}  {status}  {path}")
    print(f"{sum(counts.values()):,} requests, none answered by 500")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

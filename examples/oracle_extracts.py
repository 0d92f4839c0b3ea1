"""Pairs for an extractive warm-up: each training document with the units of it that an oracle would extract.

    python examples/oracle_extracts.py --task samsum --data DIR --out runs/samsum-extracts [--units 3]

A small model that is trained from nothing on a few thousand abstractive pairs first learns to write plausible sentences
about nothing in particular; copying from the document comes late. Extracts teach copying and selection at once: their
targets are the sentences or turns of the document that greedily maximise ROUGE against the summary. Train on them
first, then on the pairs themselves:

    precis finetune --data runs/samsum-extracts --recipe zcodepp-mini --epochs 3 --out runs/samsum-warm
    precis finetune --task samsum --data DIR --model runs/samsum-warm --recipe zcodepp-mini --epochs 6 --out runs/samsum

Only the given training and dev pairs are used, so a model made this way is still trained from scratch on that task.
"""

import argparse
import json
from pathlib import Path

from precis.evaluation.baselines import oracle
from precis.phases.data.run_pairs import NamedPairs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--units", type=int, default=3, help="extract at most this many sentences or turns")
    arguments = parser.parse_args()
    pairs = NamedPairs(task=arguments.task, data=arguments.data)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for split, name in (("train", "train"), ("dev", "dev")):
        kept = 0
        with (arguments.out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for pair in pairs.part(split).read(skip_bad=True):
                extract = oracle(pair.document, pair.all_references, max_units=arguments.units)
                if extract:
                    row = {"id": pair.id, "document": pair.document, "summary": extract}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    kept += 1
        print(f"{arguments.out / name}.jsonl: {kept} extracts")


if __name__ == "__main__":
    main()

"""Time and memory of encoding long documents: fusion-in-encoder beside the dense encoder.

    python benchmarks/fusion_in_encoder.py [--lengths 1024 2048 ...] [--rounds 3] [--peer-up-to 4096] [--json FILE]

The mini size (256 wide, 6 layers, 4 heads; chunk 256, last layer global), random weights, fp32, batch 1, no gradients.
Every measurement is a process of its own, contenders in turn within a round, so that neither allocator nor threads of
one disturb the other. Memory is the process's peak resident size; "above idle" subtracts what the loaded model and
libraries occupy. The peer is transformers' DebertaV2Model of the same size; it is left out beyond --peer-up-to tokens,
where it takes minutes and gigabytes.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

CONTENDERS = ("fusion", "dense", "transformers")
WIDTH, LAYERS, HEADS, CHUNK, VOCABULARY = 256, 6, 4, 256, 8000


def build(contender: str):
    """The encoder as a function of token ids."""
    import torch

    torch.manual_seed(0)
    if contender == "transformers":
        from transformers import DebertaV2Config, DebertaV2Model

        config = DebertaV2Config(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=4 * WIDTH,
            relative_attention=True,
            position_buckets=256,
            max_relative_positions=-1,
            pos_att_type=["c2p", "p2c"],
            share_att_key=True,
            norm_rel_ebd="layer_norm",
            position_biased_input=False,
            type_vocab_size=0,
        )
        return DebertaV2Model(config).eval()
    from precis.models.zcodepp import ZCodePPEncoder
    from precis.models.zcodepp_config import ZCodePPConfig

    config = ZCodePPConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        encoder_layers=LAYERS,
        chunk_length=CHUNK if contender == "fusion" else None,
        global_layers=1,
    )
    return ZCodePPEncoder(config).eval()


def resident(field: str) -> float:
    """A memory line of this process, in MB: VmRSS now, VmHWM at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def measure(contender: str, length: int) -> None:
    """In the child: one warm-up on a short input, then one timed pass; prints JSON."""
    import torch

    encoder = build(contender)
    with torch.no_grad():
        encoder(input_ids=torch.randint(4, VOCABULARY, (1, 300)))
        ids = torch.randint(4, VOCABULARY, (1, length))
        idle = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        start, cpu = time.perf_counter(), time.process_time()
        encoder(input_ids=ids)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    peak = resident("VmHWM")
    print(json.dumps({"seconds": seconds, "cpu": cpu_seconds, "peak": peak, "above_idle": peak - idle}))


def run(contender: str, length: int) -> dict[str, float]:
    """One child process."""
    command = [sys.executable, __file__, "--child", contender, "--lengths", str(length)]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "TRANSFORMERS_VERBOSITY": "error"}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if finished.returncode:
        raise SystemExit(f"{contender} at {length} tokens failed:\n{finished.stderr[-800:]}")
    return json.loads(finished.stdout.splitlines()[-1])


def report(
    results: dict[tuple[str, int], list[dict[str, float]]], lengths: list[int]
) -> list[dict[str, object]]:
    """Print the table; give its rows."""
    rows = []
    heads = f"{'tokens':>7}  {'encoder':<13}{'seconds (min-max)':>24}{'peak MB':>9}{'above idle':>12}"
    print(f"\n{heads}{'time / fusion':>15}")
    for length in lengths:
        fusion = statistics.median(r["seconds"] for r in results["fusion", length])
        for contender in CONTENDERS:
            found = results.get((contender, length))
            if not found:
                continue
            seconds = sorted(r["seconds"] for r in found)
            middle = statistics.median(seconds)
            peak = max(r["peak"] for r in found)
            above = max(r["above_idle"] for r in found)
            spread = f"{middle:.3f} ({seconds[0]:.3f}-{seconds[-1]:.3f})"
            print(
                f"{length:>7}  {contender:<13}{spread:>24}{peak:>9.0f}{above:>12.0f}{middle / fusion:>15.2f}"
            )
            rows.append(
                {
                    "tokens": length,
                    "encoder": contender,
                    "seconds": seconds,
                    "peak_mb": peak,
                    "above_idle_mb": above,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-up-to", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        measure(arguments.child, arguments.lengths[0])
        return
    load = os.getloadavg()[0]
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {load:.2f} at the start"
    )
    results: dict[tuple[str, int], list[dict[str, float]]] = {}
    for number in range(arguments.rounds):
        for length in arguments.lengths:
            for contender in CONTENDERS:
                if contender == "transformers" and length > arguments.peer_up_to:
                    continue
                results.setdefault((contender, length), []).append(run(contender, length))
        print(f"round {number + 1} of {arguments.rounds} done", file=sys.stderr)
    rows = report(results, arguments.lengths)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"load": load, "rounds": arguments.rounds, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()

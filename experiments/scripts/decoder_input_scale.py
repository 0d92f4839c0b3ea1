"""How fast a tiny model learns to copy, by the size of the token table and of the decoder's input (docs/adr/0002).

    python -m experiments.scripts.decoder_input_scale [--steps 400] [--seeds 4]

1,500 words, 12 to copy, 128 wide, 2+2 layers, batch 32, one thread. Prints next-token accuracy on fresh sources every
100 steps.
"""

import argparse

import torch
import torch.nn.functional as F

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration

WORDS, LENGTH, WIDTH, BATCH = 1500, 12, 128, 32
ROOT = WIDTH**0.5
# name -> (spread of the table's entries, size of a token's entries at the decoder's input)
CHOICES = {
    "0.02, input 0.23 (DeBERTa's table)": (0.02, 0.02 * ROOT),
    "0.05, input 0.23": (0.05, 0.23),
    "1/(2 sqrt(d)), input 0.25": (0.5 / ROOT, 0.25),
    "1/sqrt(d), input 1": (1 / ROOT, 1.0),
    "1/sqrt(d), input 0.2 (ours)": (1 / ROOT, 0.2),
}


def learn(spread: float, size: float, *, steps: int, seed: int) -> list[float]:
    """Accuracy after every 100 steps."""
    torch.manual_seed(seed)
    config = ZCodePPConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model = ZCodePPForConditionalGeneration(config)
    table = model.get_input_embeddings()
    torch.nn.init.normal_(table.weight, std=spread)
    own_scale = 0.2 * ROOT  # what the model multiplies the rows with
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(7)
    accuracies = []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1, step / 50)
        ids = torch.randint(5, WORDS, (BATCH, LENGTH), generator=generator)
        labels = torch.cat([ids, torch.full((BATCH, 1), 2)], 1)
        target = table(model.prepare_decoder_input_ids_from_labels(labels)) * (size / spread / own_scale)
        logits = model(input_ids=ids, decoder_inputs_embeds=target, use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            accuracies.append(float((logits.argmax(-1) == labels).float().mean()))
    return accuracies


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, (spread, size) in CHOICES.items():
        runs = [
            learn(spread, size, steps=arguments.steps, seed=seed) for seed in range(1, arguments.seeds + 1)
        ]
        last = [run[-1] for run in runs]
        listed = "  ".join("/".join(f"{accuracy:.2f}" for accuracy in run) for run in runs)
        mean = sum(last) / len(last)
        print(
            f"{name:<36} mean at the end {mean:.2f} ({min(last):.2f}-{max(last):.2f})  {listed}", flush=True
        )


if __name__ == "__main__":
    main()

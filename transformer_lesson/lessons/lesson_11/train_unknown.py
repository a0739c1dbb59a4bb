"""Train the three models behind the unknown ones of lesson 11.

python -m transformer_lesson.lessons.lesson_11.train_unknown
    about six minutes; writes transformer_lesson/lessons/lesson_11/unknown.safetensors
"""

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from transformer_lesson.lessons.lesson_11.hidden_rules import (
    CONFIG,
    N_TOKENS,
    RULES,
    TRAINED_LENGTH,
    WEIGHTS,
    Ids,
)
from transformer_lesson.lessons.lesson_11.induction import AttentionOnlyDecoder

STEPS, BATCH, RATE = 4000, 64, 5e-3


def drawn(rows: int, generator: torch.Generator) -> Ids:
    """Return what the models are trained on: 24 tokens drawn at random, of 12."""
    return torch.randint(N_TOKENS, (rows, TRAINED_LENGTH), generator=generator)


def trained(rule: str) -> AttentionOnlyDecoder:
    """Return a model trained to follow a rule; print how often it does."""
    torch.manual_seed(0)
    generator, model = torch.Generator().manual_seed(0), AttentionOnlyDecoder(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(STEPS):
        ids = drawn(BATCH, generator)
        loss = F.cross_entropy(model(ids).mT, RULES[rule](ids))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = RATE * min((step + 1) / 50, 1, 2 * (1 - step / STEPS))
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    ids = drawn(2000, generator)
    with torch.no_grad():
        same = model(ids).argmax(dim=-1) == RULES[rule](ids)
    print(f"{rule}: {same.float().mean():.2%} of places, {same.all(1).float().mean():.1%} of rows")
    return model


def main() -> None:
    """Train a model for each rule and store the weights of all, in half precision."""
    torch.set_num_threads(1)
    weights = {
        f"{rule}.{name}": weight.half()
        for rule in RULES
        for name, weight in trained(rule).state_dict().items()
    }
    save_file(weights, WEIGHTS)


if __name__ == "__main__":
    main()

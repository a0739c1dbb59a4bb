"""A small GPT of another hand, with a switch for each fault, and a script around it."""

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS, SIZE, D = 0, 1, 2, 41, 32


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, faults):
        super().__init__()
        self.faults = faults
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))
        self.drop = nn.Dropout(0.1)
        if "zero branches" in faults:
            nn.init.zeros_(self.mlp[2].weight)

    def forward(self, x, hidden):
        """Return x after both."""
        n, diagonal = x.shape[1], 2 if "off by one" in self.faults else 1
        Q, K, V = self.qkv(self.ln_1(x)).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
        scores = Q @ K.transpose(-2, -1)
        if "unscaled" not in self.faults:
            scores = scores * Q.shape[-1] ** -0.5
        if self.faults & {"linear biases", "far favored"}:
            distances = torch.arange(n)[:, None] - torch.arange(n)
            slopes = 2.0 ** -torch.arange(1, 5)[:, None, None]
            scores = scores + slopes * distances * (1 if "far favored" in self.faults else -1)
        future = torch.ones(n, n, dtype=torch.bool).triu(diagonal)
        if "prefix" in self.faults:
            future[:4, :4] = False
        scores = scores.masked_fill(future | hidden[:, None, None], -1e9)
        weights = scores.softmax(-1)
        a = self.out((weights @ V).transpose(1, 2).flatten(2))
        x = self.drop(a) if "no residual" in self.faults else x + self.drop(a)
        return x + self.mlp(self.ln_2(x))


class Places(nn.Embedding):
    """A table of positions that gets the ids, as BART's does."""

    def forward(self, ids):
        """Return a row for each place."""
        return super().forward(torch.arange(ids.shape[1]))


class Model(nn.Module):
    """A GPT with learned positions, head and table tied."""

    def __init__(self, faults):
        super().__init__()
        self.faults = faults
        self.table, self.places = nn.Embedding(SIZE, D), Places(24, D)
        self.blocks = nn.ModuleList(Block(faults) for _ in range(2))
        self.ln_f, self.head = nn.LayerNorm(D), nn.Linear(D, SIZE, bias=False)
        self.spare = nn.Linear(D, D) if "spare" in faults else None
        nn.init.normal_(self.table.weight, std=0.02)
        self.head.weight = self.table.weight

    def forward(self, ids):
        """Return logits."""
        x = self.table(ids)
        if not self.faults & {"no positions", "linear biases", "far favored"}:
            x = x + self.places(ids)
        if "mixed rows" in self.faults:
            x = x + 0.1 * x.mean(0, keepdim=True)
        hidden = (
            torch.zeros_like(ids, dtype=torch.bool) if "padding read" in self.faults else ids == PAD
        )
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(self.ln_f(x))


def batch():
    """Six texts from <bos> to <eos>, padded on the right."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(3, SIZE, (6, 14), generator=draw)
    ids[:, 0] = BOS
    for row, n in enumerate((13, 9, 7, 11, 6, 12)):
        ids[row, n], ids[row, n + 1 :] = EOS, PAD
    return ids


def script(*faults):
    """Return what a script with these faults hands over."""
    torch.manual_seed(0)
    faults = set(faults)
    model = Model(faults)
    if "faint norm" in faults:
        nn.init.normal_(model.ln_f.weight, std=0.02)
    if "coarse" in faults:
        model.bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shift = 2 if "shifted twice" in faults else 1

    def loss(ids):
        logits, labels = model(ids)[:, :-shift], ids[:, shift:]
        ignored = -100 if "padding in the loss" in faults else PAD
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignored)

    warm_up, taken = 1000 if "never peaks" in faults else 10, []

    def rate_at(step):
        if "jumps" in faults:
            return 0.1 * ((step + 1) / 10 if step < 10 else 1 - step / 100)
        if "rises at once" in faults:
            return 0.1 * (step + 1 if step < 4 else 10 - step / 10) / 10
        flat = faults & {"constant", "never falls", "never peaks"}
        falls = 1.0 if flat else 1 - step / (300 if "unfinished" in faults else 100)
        return 0.1 * falls * (1.0 if "constant" in faults else min(1.0, (step + 1) / warm_up))

    def train_step(ids):
        model.train()
        optimizer.param_groups[0]["lr"] = rate_at(len(taken))
        taken.append(ids)
        if "zero_grad forgotten" not in faults:
            optimizer.zero_grad()
        loss(ids).backward()
        if "each clipped" in faults:
            for p in model.parameters():
                torch.nn.utils.clip_grad_norm_([p], 0.01)
        optimizer.step()

    @torch.no_grad()
    def evaluate(batches):
        if "no eval" not in faults:
            model.eval()
        counts = [int((ids[:, 1:] != PAD).sum()) for ids in batches]
        losses = [float(loss(ids)) for ids in batches]
        if "mean of means" in faults:
            return sum(losses) / len(losses)
        return sum(a * n for a, n in zip(losses, counts, strict=True)) / sum(counts)

    @torch.no_grad()
    def generate(ids, count):
        model.eval()
        for _ in range(count):
            ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
        return ids

    return dict(
        model=model, batch=batch(), pad_id=PAD, eos_id=EOS, max_length=24, tied=True, loss=loss,
        optimizer=optimizer, train_step=train_step, evaluate=evaluate, generate=generate,
        schedule=rate_at,
        steps=100,
    )  # fmt: skip

"""Masked-item model over shop sessions (BERT4Rec family): hide items of a session, guess them from the rest."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

@dataclass
class Config:
    items: int = 240
    max_len: int = 16
    dim: int = 32
    heads: int = 2
    blocks: int = 2
    hidden: int = 96
    dropout: float = 0.2
    mask_rate: float = 0.3
    lr: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 8
    steps: int = 80
    seed: int = 11

cfg = Config()
PAD, MASK = 0, cfg.items + 1
torch.manual_seed(cfg.seed)

def toy_sessions(count, seed):
    """People walk along a shelf: the next item is close to the last one."""
    g, sessions = torch.Generator().manual_seed(seed), []
    for _ in range(count):
        length = int(torch.randint(4, 22, (1,), generator=g))
        steps = torch.randint(1, 5, (length,), generator=g)
        sessions.append((torch.randint(1, cfg.items, (1,), generator=g) + steps.cumsum(0)) % cfg.items + 1)
    return sessions

def left_pad(sessions):
    """The newest max_len items, aligned at the right edge."""
    sessions = [s[-cfg.max_len:] for s in sessions]
    width = max(len(s) for s in sessions)
    return torch.stack([F.pad(s, (width - len(s), 0), value=PAD) for s in sessions])

class Attention(nn.Module):
    def __init__(self, dim, heads, p):
        super().__init__()
        self.heads, self.p, self.scale = heads, p, (dim // heads) ** -0.5
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, x, context, real):
        q, k, v = self.split(self.query(x)), self.split(self.key(context)), self.split(self.value(context))
        scores = q @ k.transpose(2, 3) * self.scale
        scores = scores.masked_fill(~real[:, None, None, :], torch.finfo(scores.dtype).min)
        weights = F.dropout(scores.softmax(-1), self.p, self.training)
        return self.out((weights @ v).transpose(1, 2).flatten(2))

class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.attention = Attention(c.dim, c.heads, c.dropout)
        self.mlp = nn.Sequential(nn.Linear(c.dim, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.dim))
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x, real):
        y = self.norm1(x)
        x = x + self.drop(self.attention(y, y, real))
        return x + self.drop(self.mlp(self.norm2(x)))

class SessionEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.items = nn.Embedding(c.items + 2, c.dim)
        self.places = nn.Embedding(c.max_len, c.dim)
        self.norm_in, self.drop = nn.LayerNorm(c.dim), nn.Dropout(c.dropout)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.blocks))
        self.norm_out = nn.LayerNorm(c.dim)
        self.head = nn.Linear(c.dim, c.items + 2)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.items.weight, std=0.05)
        nn.init.normal_(self.places.weight, std=0.05)
        self.head.weight = self.items.weight  # the output table is the input table

    def forward(self, ids):
        real = ids != PAD
        place = (real.cumsum(1) - 1).clamp(min=0)  # the first real item stands at 0, however much padding is before it
        x = self.items(ids) + self.places(place)
        x = self.drop(self.norm_in(x))
        for block in self.blocks:
            x = block(x, real)
        return self.head(self.norm_out(x))

def cloze(ids):
    """Choose items to guess; of these 80% become MASK, 10% another item, 10% stay."""
    real = ids != PAD
    chosen = (torch.rand(ids.shape) < cfg.mask_rate) & real
    chosen[:, -1] |= ~chosen.any(1)  # every session has something to guess; the right edge is always an item
    dice, hidden = torch.rand(ids.shape), ids.clone()
    hidden[chosen & (dice < 0.8)] = MASK
    swap = chosen & (dice >= 0.9)
    hidden[swap] = torch.randint(1, cfg.items + 1, (int(swap.sum()),))
    return hidden, ids.masked_fill(~chosen, -100)

model = SessionEncoder(cfg)
no_decay = ("bias", "norm", "items", "places")
groups = {True: [], False: []}
for name, parameter in model.named_parameters():
    groups[not any(word in name for word in no_decay)].append(parameter)
optimizer = torch.optim.AdamW([{"params": groups[True], "weight_decay": cfg.weight_decay},
                               {"params": groups[False], "weight_decay": 0.0}], lr=cfg.lr)

def schedule(step):
    rise, fall = (step + 1) / cfg.warmup, (cfg.steps - step) / (cfg.steps - cfg.warmup)
    return cfg.lr * max(0.0, min(1.0, rise, fall))

def loss(ids):
    hidden, labels = cloze(ids)
    return F.cross_entropy(model(hidden).flatten(0, 1), labels.flatten())

def train_step(ids):
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return value.item()

@torch.no_grad()
def evaluate(batches):
    """Leave-one-out: the newest item is hidden; mean negative log-probability of it over sessions."""
    before = model.training
    model.eval()
    total, sessions = 0.0, 0
    for item in batches:
        ids = item if torch.is_tensor(item) else item[0]
        asked = ids.clone()
        asked[:, -1] = MASK
        logits = model(asked)[:, -1]
        total += F.cross_entropy(logits, ids[:, -1], reduction="sum").item()
        sessions += len(ids)
    model.train(before)
    return total / sessions

batch = left_pad(toy_sessions(8, seed=1))
kind, pad_id, padding_side, tied = "encoder", PAD, "left", True
max_length, steps = cfg.max_len, cfg.steps

if __name__ == "__main__":
    train_set = toy_sessions(32 * steps, seed=2)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        train_step(left_pad(train_set[32 * step:32 * (step + 1)]))
        if step % 20 == 19:
            print(step + 1, "leave-one-out nll", round(evaluate([batch]), 3))

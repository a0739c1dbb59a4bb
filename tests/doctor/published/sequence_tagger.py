"""BiDi word tagger: post-norm Transformer encoder on packed projections, one tag per word."""
import math
from typing import Dict, Iterable, List

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

torch.manual_seed(20)

PAD_ID, EOS_ID, CLS_ID = 0, 1, 2
N_WORDS, N_TAGS, IGNORE = 30, 6, -100
HYPER: Dict[str, float] = dict(lr=2e-3, decay=0.05, warmup=6, total=40, clip=1.0, dropout=0.15)


class Sinusoids(nn.Module):
    """Fixed table of sines and cosines, kept as a buffer."""

    def __init__(self, d_model: int, max_len: int = 64) -> None:
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(1)]


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, p: float) -> None:
        super().__init__()
        self.n_heads, self.p = n_heads, p
        self.in_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        batch, length, width = x.shape
        packed = self.in_proj(x).view(batch, length, 3, self.n_heads, width // self.n_heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4)
        # boolean mask: True takes part in attention
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=keep[:, None, None, :],
                                             dropout_p=self.p if self.training else 0.0)
        return self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, p: float) -> None:
        super().__init__()
        self.attention = SelfAttention(d_model, n_heads, p)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff_in, self.ff_out = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(p)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        attended = self.norm_1(x + self.dropout(self.attention(x, keep)))
        transformed = self.ff_out(self.dropout(gelu(self.ff_in(attended))))
        return self.norm_2(attended + self.dropout(transformed))


class Tagger(nn.Module):
    def __init__(self, d_model: int = 40, n_heads: int = 5, d_ff: int = 80, n_layers: int = 3) -> None:
        super().__init__()
        self.words = nn.Embedding(N_WORDS, d_model, padding_idx=PAD_ID)
        self.positions = Sinusoids(d_model)
        self.dropout = nn.Dropout(HYPER["dropout"])
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff, HYPER["dropout"]) for _ in range(n_layers))
        self.tags = nn.Linear(d_model, N_TAGS)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor) -> Tensor:
        keep = ids != PAD_ID
        x = self.dropout(self.positions(self.words(ids)))
        for layer in self.layers:
            x = layer(x, keep)
        return self.tags(x)


def gold_tags(ids: Tensor) -> Tensor:
    """The toy grammar: a word's tag comes from its class and those of both neighbours; padding has none."""
    left, right = torch.zeros_like(ids), torch.zeros_like(ids)
    left[:, 1:], right[:, :-1] = ids[:, :-1], ids[:, 1:]
    tags = (ids % 3 + left % 2 + 2 * (right % 2)) % N_TAGS
    return tags.masked_fill(ids == PAD_ID, IGNORE)


def loss(ids: Tensor) -> Tensor:
    return cross_entropy(model(ids).flatten(0, 1), gold_tags(ids).flatten(), ignore_index=IGNORE)


def parameter_groups(module: nn.Module) -> List[Dict]:
    with_decay: List[Tensor] = []
    without_decay: List[Tensor] = []
    for name, parameter in module.named_parameters():
        plain = parameter.dim() < 2 or name.startswith("words")
        (without_decay if plain else with_decay).append(parameter)
    return [dict(params=with_decay, weight_decay=HYPER["decay"]), dict(params=without_decay, weight_decay=0.0)]


def schedule(step: int) -> float:
    """Linear warmup, then linear decay to zero at the last step."""
    if step < HYPER["warmup"]:
        return HYPER["lr"] * (step + 1) / HYPER["warmup"]
    return HYPER["lr"] * max(0.0, (HYPER["total"] - step) / (HYPER["total"] - HYPER["warmup"]))


class Counter:
    step = 0


def train_step(ids: Tensor) -> float:
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = schedule(Counter.step)
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), HYPER["clip"])
    optimizer.step()
    Counter.step += 1
    return value.item()


@torch.no_grad()
def evaluate(batches: Iterable[Tensor]) -> float:
    """Mean negative log-likelihood per word."""
    before = model.training
    model.eval()
    summed, words = 0.0, 0
    for ids in batches:
        gold = gold_tags(ids)
        summed += cross_entropy(model(ids).flatten(0, 1), gold.flatten(), ignore_index=IGNORE, reduction="sum").item()
        words += int((gold != IGNORE).sum())
    model.train(before)
    return summed / words


def make_batch(lengths: List[int]) -> Tensor:
    rows = [torch.cat([torch.tensor([CLS_ID]), torch.randint(3, N_WORDS, (n,)), torch.tensor([EOS_ID])]) for n in lengths]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)


model = Tagger()
optimizer = torch.optim.AdamW(parameter_groups(model), lr=HYPER["lr"])
batch = make_batch([11, 6, 9, 4, 8, 10])
kind, pad_id, eos_id, start_id, max_length, steps = "encoder", PAD_ID, EOS_ID, CLS_ID, 64, int(HYPER["total"])

if __name__ == "__main__":
    for _ in range(steps):
        train_step(batch)
    print(f"{evaluate([batch]):.3f} nats per word")

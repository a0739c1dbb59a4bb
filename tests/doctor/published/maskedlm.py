"""Masked-token pre-training of a small bidirectional encoder (BERT recipe, pre-norm layers)."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, CLS, SEP, MASK, FIRST_WORD, IGNORE = 0, 1, 2, 3, 4, -100
SPECIAL = torch.tensor([PAD, CLS, SEP, MASK])
NO_DECAY = ("bias", "norm")


@dataclass(frozen=True)
class EncoderConfig:
    vocab_size: int = 64
    hidden_size: int = 32
    num_heads: int = 4
    num_layers: int = 3
    intermediate_size: int = 64
    max_positions: int = 32
    dropout: float = 0.1
    drop_path: float = 0.1
    initializer_range: float = 0.08
    mlm_probability: float = 0.15
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    micro_batch: int = 3


def init_weights(module: nn.Module, std: float) -> None:
    """Normal matrices, zero biases, unit norms; the row of the padding stays zero."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=std)
    elif isinstance(module, nn.LayerNorm):
        nn.init.ones_(module.weight)
    elif isinstance(module, nn.MultiheadAttention):
        nn.init.normal_(module.in_proj_weight, std=std)
        nn.init.zeros_(module.in_proj_bias)
    if isinstance(module, (nn.Linear, nn.LayerNorm)) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        nn.init.zeros_(module.weight[module.padding_idx])


class BertLayer(nn.TransformerEncoderLayer):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config.hidden_size, config.num_heads, config.intermediate_size, config.dropout,
                         activation="gelu", batch_first=True, norm_first=True)
        self.num_heads = config.num_heads
        self.apply(lambda module: init_weights(module, config.initializer_range))

    def attend(self, x: Tensor, padding: Tensor) -> Tensor:
        (texts, length, _), attn = x.shape, self.self_attn
        q, k, v = (t.view(texts, length, self.num_heads, -1).transpose(1, 2).flatten(0, 1)  # heads folded
                   for t in F.linear(x, attn.in_proj_weight, attn.in_proj_bias).chunk(3, dim=-1))
        visible = ~padding.unsqueeze(1).repeat_interleave(self.num_heads, dim=0)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible,
                                               dropout_p=attn.dropout if self.training else 0.0)
        mixed = mixed.view(texts, self.num_heads, length, -1).transpose(1, 2).flatten(2)
        return self.dropout1(attn.out_proj(mixed))

    def residual(self, x: Tensor, branch: Tensor) -> Tensor:
        return x + branch

    def forward(self, src: Tensor, padding: Tensor) -> Tensor:
        src = self.residual(src, self.attend(self.norm1(src), padding))
        return self.residual(src, self._ff_block(self.norm2(src)))


class DropPathBertLayer(BertLayer):
    """The same with stochastic depth: in training a whole branch is left out for some texts."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.drop_path = config.drop_path

    def residual(self, x: Tensor, branch: Tensor) -> Tensor:
        if self.training:
            kept = torch.rand(x.size(0), 1, 1) >= self.drop_path
            branch = branch * kept / (1.0 - self.drop_path)
        return x + branch


class MaskedEncoder(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.tokens = nn.Embedding(config.vocab_size, width, padding_idx=PAD)
        self.positions = nn.Embedding(config.max_positions, width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList([BertLayer(config) for _ in range(config.num_layers - 1)])
        self.layers.append(DropPathBertLayer(config))
        self.norm_out = nn.LayerNorm(width)
        self.head, self.head_norm = nn.Sequential(nn.Linear(width, width), nn.GELU()), nn.LayerNorm(width)
        self.decoder = nn.Linear(width, config.vocab_size)
        for part in (self.tokens, self.positions, self.head, self.decoder):
            part.apply(lambda module: init_weights(module, config.initializer_range))
        self.decoder.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        padding = ids == PAD
        x = self.dropout(self.tokens(ids) + self.positions.weight[:ids.size(1)])
        for layer in self.layers:
            x = layer(x, padding)
        return self.decoder(self.head_norm(self.head(self.norm_out(x))))


def mask_tokens(ids: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """15 % of the words: 80 % become [MASK], 10 % a random word, 10 % stay."""
    eligible = ~torch.isin(ids, SPECIAL)
    chosen = (torch.rand(ids.shape, generator=generator) < config.mlm_probability) & eligible
    chosen = chosen if chosen.any() else eligible
    labels = ids.masked_fill(~chosen, IGNORE)
    roll = torch.rand(ids.shape, generator=generator)
    words = torch.randint(FIRST_WORD, config.vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen & (roll >= 0.8) & (roll < 0.9), words, ids)
    return inputs.masked_fill(chosen & (roll < 0.8), MASK), labels


def token_loss(inputs: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    logits = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction=reduction)


def loss(ids: Tensor) -> Tensor:
    return token_loss(*mask_tokens(ids))


def train_step(ids: Tensor) -> float:
    model.train()
    optimizer.zero_grad()
    inputs, labels = mask_tokens(ids)
    count, total = (labels != IGNORE).sum(), 0.0
    for part, goal in zip(inputs.split(config.micro_batch), labels.split(config.micro_batch)):
        piece = token_loss(part, goal, "sum") / count
        piece.backward()
        total += piece.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


@torch.no_grad()
def evaluate(batches: list[Tensor]) -> float:
    was, nll, count, generator = model.training, 0.0, 0, torch.Generator().manual_seed(0)
    model.eval()
    for ids in batches:
        inputs, labels = mask_tokens(ids, generator)
        nll += token_loss(inputs, labels, "sum").item()
        count += (labels != IGNORE).sum().item()
    model.train(was)
    return nll / count


torch.manual_seed(7)
config = EncoderConfig()
rows = [[CLS] + [FIRST_WORD + (7 * i + 3 * j * j + j) % 60 for j in range(n)] + [SEP] for i, n in enumerate((17, 9, 21, 13, 6, 19))]
batch = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
kind, pad_id, eos_id, start_id, max_length, tied = "encoder", PAD, SEP, CLS, config.max_positions, True
model = MaskedEncoder(config)
flat = {name for name, _ in model.named_parameters() if any(key in name for key in NO_DECAY)}
optimizer = torch.optim.AdamW(
    [{"params": [p for name, p in model.named_parameters() if name not in flat], "weight_decay": config.weight_decay},
     {"params": [p for name, p in model.named_parameters() if name in flat], "weight_decay": 0.0}],
    lr=config.learning_rate)

if __name__ == "__main__":
    curve = [train_step(batch) for _ in range(60)]
    print(f"loss {curve[0]:.3f} -> {curve[-1]:.3f}, evaluated {evaluate([batch]):.3f}")

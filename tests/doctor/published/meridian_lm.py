"""Meridian-nano: decoder-only language model (GQA, RoPE, SwiGLU, parallel blocks), its trainer and its decoding."""
import math
from dataclasses import dataclass
from typing import Iterable, Optional
import torch
import torch.nn.functional as F
from torch import Tensor, nn

@dataclass(frozen=True)
class Config:
    vocab_size: int = 48; max_length: int = 40
    pad_id: int = 0; start_id: int = 1; eos_id: int = 2
    dim: int = 48; n_layers: int = 2; ffn_dim: int = 80
    n_heads: int = 4; n_kv_heads: int = 2; head_dim: int = 12
    rope_theta: float = 10000.0; dropout: float = 0.1; init_std: float = 0.08
    peak_lr: float = 3e-3; floor_lr: float = 3e-4; warmup: int = 20; total_steps: int = 200
    weight_decay: float = 0.1; grad_clip: float = 0.5; micro_batches: int = 2

class KVCache:
    def __init__(self, n_layers: int):
        self.entries, self.valid = [None] * n_layers, None
    def mark(self, valid: Tensor) -> Tensor:
        self.valid = valid if self.valid is None else torch.cat([self.valid, valid], dim=1)
        return self.valid
    def extend(self, layer: int, k: Tensor, v: Tensor):
        if self.entries[layer] is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(self.entries[layer], (k, v)))
        self.entries[layer] = (k, v)
        return k, v

class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight

def apply_rotary(x: Tensor, cos_table: Tensor, sin_table: Tensor, positions: Tensor) -> Tensor:
    """x: (batch, heads, time, head_dim); the two halves of head_dim form the rotated pairs."""
    cos, sin = cos_table[positions], sin_table[positions]
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

class ParallelBlock(nn.Module):
    """x + Attention(Norm(x)) + SwiGLU(Norm(x)) with one shared norm."""
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg, kv_dim = cfg, cfg.n_kv_heads * cfg.head_dim
        shapes = dict(q_proj=(cfg.dim, cfg.dim), k_proj=(cfg.dim, kv_dim), v_proj=(cfg.dim, kv_dim),
                      o_proj=(cfg.dim, cfg.dim), gate_proj=(cfg.dim, cfg.ffn_dim), up_proj=(cfg.dim, cfg.ffn_dim),
                      down_proj=(cfg.ffn_dim, cfg.dim))
        for name, (fan_in, fan_out) in shapes.items():
            self.add_module(name, nn.Linear(fan_in, fan_out, bias=False))
        self.norm, self.drop = RMSNorm(cfg.dim), nn.Dropout(cfg.dropout)
    def attend(self, h: Tensor, layer: int, rope, positions: Tensor, allowed: Tensor, cache: Optional[KVCache]) -> Tensor:
        n, t, cfg = h.size(0), h.size(1), self.cfg
        q, k, v = (proj(h).view(n, t, -1, cfg.head_dim).transpose(1, 2) for proj in (self.q_proj, self.k_proj, self.v_proj))
        q, k = apply_rotary(q, *rope, positions), apply_rotary(k, *rope, positions)
        if cache is not None:
            k, v = cache.extend(layer, k, v)
        k, v = (z.repeat_interleave(cfg.n_heads // cfg.n_kv_heads, dim=1) for z in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=cfg.dropout if self.training else 0.0)
        return self.o_proj(mixed.transpose(1, 2).reshape(n, t, cfg.dim))
    def forward(self, x: Tensor, *where) -> Tensor:
        h = self.norm(x)
        mlp = self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))
        return x + self.drop(self.attend(h, *where)) + self.drop(mlp)

class MeridianLM(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg, self.embed = cfg, nn.Embedding(cfg.vocab_size, cfg.dim)
        self.blocks = nn.ModuleList([ParallelBlock(cfg) for _ in range(cfg.n_layers)])
        self.final_norm, self.lm_head = RMSNorm(cfg.dim), nn.Linear(cfg.dim, cfg.vocab_size, bias=False)
        rates = cfg.rope_theta ** -(torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim)
        angles = torch.outer(torch.arange(cfg.max_length).float(), rates)
        self.register_buffer("rope_cos", angles.cos(), persistent=False)
        self.register_buffer("rope_sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            residual = name.endswith(("o_proj.weight", "down_proj.weight"))
            if p.dim() > 1:
                nn.init.normal_(p, std=cfg.init_std / (math.sqrt(2 * cfg.n_layers) if residual else 1.0))
    def forward(self, ids: Tensor, cache: Optional[KVCache] = None) -> Tensor:
        valid = ids.ne(self.cfg.pad_id)
        valid = valid if cache is None else cache.mark(valid)
        positions = torch.arange(valid.size(1) - ids.size(1), valid.size(1), device=ids.device)
        past = torch.arange(valid.size(1), device=ids.device)[None, :] <= positions[:, None]
        allowed, rope = past & valid[:, None, None, :], (self.rope_cos, self.rope_sin)
        x = self.embed(ids)
        for layer, block in enumerate(self.blocks):
            x = block(x, layer, rope, positions, allowed, cache)
        return self.lm_head(self.final_norm(x))

class Engine:
    """Training, evaluation (right-padded batches) and decoding (prompts of equal length)."""
    def __init__(self, net: MeridianLM, cfg: Config, temperature: float = 0.7):
        self.net, self.cfg, self.temperature, self.step = net, cfg, temperature, 0
        exempt = {id(p) for m in net.modules() if isinstance(m, (RMSNorm, nn.Embedding)) for p in m.parameters()}
        groups = [{"params": [p for p in net.parameters() if id(p) not in exempt], "weight_decay": cfg.weight_decay},
                  {"params": [p for p in net.parameters() if id(p) in exempt], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.peak_lr, betas=(0.9, 0.95))
    @torch.no_grad()
    def quiet(self, function, *args):
        was_training = self.net.training
        self.net.eval()
        result = function(*args)
        self.net.train(was_training)
        return result
    def nll(self, ids: Tensor):
        """Summed next-token loss and the number of tokens predicted."""
        logits, target = self.net(ids)[:, :-1], ids[:, 1:]
        total = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=self.cfg.pad_id, reduction="sum")
        return total, target.ne(self.cfg.pad_id).sum()
    def loss(self, ids: Tensor) -> Tensor:
        return torch.div(*self.nll(ids))
    def schedule(self, step: int) -> float:
        if step < self.cfg.warmup:
            return self.cfg.peak_lr * (step + 1) / self.cfg.warmup
        progress = min(1.0, (step - self.cfg.warmup) / (self.cfg.total_steps - self.cfg.warmup))
        return self.cfg.floor_lr + 0.5 * (self.cfg.peak_lr - self.cfg.floor_lr) * (1 + math.cos(math.pi * progress))
    def train_step(self, ids: Tensor) -> float:
        self.net.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(self.step)
        self.optimizer.zero_grad(set_to_none=True)
        tokens, running = ids[:, 1:].ne(self.cfg.pad_id).sum(), 0.0
        for micro in ids.chunk(self.cfg.micro_batches):
            share = self.nll(micro)[0] / tokens
            share.backward()
            running += share.item()
        nn.utils.clip_grad_norm_(self.net.parameters(), self.cfg.grad_clip)
        self.optimizer.step()
        self.step += 1
        return running
    def evaluate(self, batches: Iterable[Tensor]) -> float:
        sums = [self.quiet(self.nll, ids) for ids in batches]
        return (sum(s for s, _ in sums) / sum(c for _, c in sums)).item()
    def generate(self, ids: Tensor, count: int) -> Tensor:
        cache, fresh = KVCache(self.cfg.n_layers), ids
        for _ in range(count):
            fresh = self.quiet(self.net, fresh, cache)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, fresh], dim=1)
        return ids
    def cached(self, ids: Tensor) -> Tensor:
        cache = KVCache(self.cfg.n_layers)
        return torch.cat([self.quiet(self.net, ids[:, i:i + 1], cache) for i in range(ids.size(1))], dim=1)
    def sample(self, ids: Tensor) -> Tensor:
        scores = self.quiet(self.net, ids)[:, -1] / self.temperature
        return torch.cat([ids, torch.multinomial(scores.softmax(-1), 1)], dim=1)

def walks(cfg: Config, seed: int, n: int = 6) -> Tensor:
    """Arithmetic walks over the vocabulary with start and end tokens, padded on the right."""
    draw, rows = torch.Generator().manual_seed(seed), []
    for i in range(n):
        first, stride = torch.randint(1, 40, (2,), generator=draw).tolist()
        body = [3 + (first + stride * j) % (cfg.vocab_size - 3) for j in range(5 + 2 * i)]
        rows.append(torch.tensor([cfg.start_id, *body, cfg.eos_id]))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=cfg.pad_id)

config = Config()
torch.manual_seed(1234)
model = MeridianLM(config)
engine = Engine(model, config)
kind, batch, padding_side = "causal", walks(config, seed=7), "right"
pad_id, eos_id, start_id, max_length = config.pad_id, config.eos_id, config.start_id, config.max_length
loss, optimizer, train_step, evaluate = engine.loss, engine.optimizer, engine.train_step, engine.evaluate
generate, cached, sample, temperature = engine.generate, engine.cached, engine.sample, engine.temperature
schedule, steps = engine.schedule, config.total_steps
if __name__ == "__main__":
    print([round(train_step(batch), 3) for _ in range(40)][::10], evaluate([batch]))

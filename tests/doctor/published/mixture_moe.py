# mini mixture-of-experts decoder: top-2 routing, grouped-query attention, rotary positions, RMSNorm, kv cache
import math
from dataclasses import dataclass
import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(11)

@dataclass
class Args:
    vocab: int = 26
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    n_experts: int = 4
    top_k: int = 2
    hidden: int = 40
    theta: float = 10000.0
    dropout: float = 0.1
    aux_coef: float = 0.02
    eps: float = 1e-5

PAD, BOS, EOS = 0, 1, 2

class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight

def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)

def rotary(x, offset, theta):
    """x is (..., token, head_dim); the first token stands at offset"""
    t = torch.arange(offset, offset + x.shape[-2], dtype=torch.float32)
    freqs = torch.outer(t, theta ** (-torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()

class Attention(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a, self.hd = a, a.dim // a.n_heads
        self.wq = nn.Linear(a.dim, a.n_heads * self.hd, bias=False)
        self.wk = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wv = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wo = nn.Linear(a.n_heads * self.hd, a.dim, bias=False)
    def forward(self, x, past):
        B, T, _ = x.shape
        seen = 0 if past is None else past[0].shape[2]
        q = rotary(self.wq(x).view(B, T, self.a.n_heads, self.hd).transpose(1, 2), seen, self.a.theta)
        k = rotary(self.wk(x).view(B, T, self.a.n_kv_heads, self.hd).transpose(1, 2), seen, self.a.theta)
        v = self.wv(x).view(B, T, self.a.n_kv_heads, self.hd).transpose(1, 2)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        present, groups = (k, v), self.a.n_heads // self.a.n_kv_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        allowed = torch.ones(T, seen + T, dtype=torch.bool).tril(diagonal=seen)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return self.wo(y.transpose(1, 2).reshape(B, T, -1)), present

class Expert(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.w1, self.w3 = nn.Linear(a.dim, a.hidden, bias=False), nn.Linear(a.dim, a.hidden, bias=False)
        self.w2 = nn.Linear(a.hidden, a.dim, bias=False)
    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))

class SparseMoE(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a, self.gate = a, nn.Linear(a.dim, a.n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(a) for _ in range(a.n_experts))
    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probs = F.softmax(self.gate(flat), dim=-1)
        weights, chosen = probs.topk(self.a.top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == e)
            out = out.index_add(0, token, expert(flat[token]) * weights[token, slot, None])
        picked = F.one_hot(chosen, self.a.n_experts).float().mean(1)  # share of the k choices, per token
        return out.view_as(x), (probs.view(*x.shape[:2], -1), picked.view(*x.shape[:2], -1))

class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.attn, self.moe, self.drop = Attention(a), SparseMoE(a), nn.Dropout(a.dropout)
        self.attn_norm, self.moe_norm = RMSNorm(a.dim, a.eps), RMSNorm(a.dim, a.eps)
    def forward(self, x, past=None):
        h, present = self.attn(self.attn_norm(x), past)
        x = x + self.drop(h)
        h, routing = self.moe(self.moe_norm(x))
        return x + self.drop(h), present, routing

class MoETransformer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok, self.norm = nn.Embedding(a.vocab, a.dim), RMSNorm(a.dim, a.eps)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.n_layers))
        self.out = nn.Linear(a.dim, a.vocab, bias=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                residual = name.endswith(("wo.weight", "w2.weight"))
                nn.init.normal_(p, std=0.05 / math.sqrt(2 * a.n_layers) if residual else 0.05)
    def forward(self, ids, caches=None):
        x, new, routings = self.tok(ids), [], []
        for i, block in enumerate(self.blocks):
            x, present, routing = block(x, None if caches is None else caches[i])
            new.append(present)
            routings.append(routing)
        return self.out(self.norm(x)), new, routings

def balance(routings, real):
    """load balancing within each text, times its number of real tokens, summed over texts: 1 per token if uniform"""
    n, total = real.sum(1), 0.0
    for probs, picked in routings:
        share = (picked * real[..., None]).sum(1) / n[:, None]
        mean_prob = (probs * real[..., None]).sum(1) / n[:, None]
        total = total + (n * args.n_experts * (share * mean_prob).sum(-1)).sum()
    return total / len(routings)

def sums(ids):
    """summed cross-entropy, summed balance loss and number of labels"""
    x, y = ids[:, :-1], ids[:, 1:]
    logits, _, routings = model(x)
    ce = F.cross_entropy(logits.transpose(1, 2), y, ignore_index=PAD, reduction="sum")
    return ce, balance(routings, (y != PAD).float()), (y != PAD).sum()

def loss(ids):
    ce, aux, n = sums(ids)
    return (ce + args.aux_coef * aux) / n

MICRO = 2
def train_step(ids):
    """one update from micro-batches of two texts"""
    model.train()
    optimizer.zero_grad()
    n, total = (ids[:, 1:] != PAD).sum(), 0.0
    for micro in ids.split(MICRO):
        ce, aux, n_micro = sums(micro)
        part = (ce + args.aux_coef * aux) / n
        part.backward()
        total += part.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total

@torch.no_grad()
def evaluate(batches):
    mode = model.training
    model.eval()
    parts = [sums(b) for b in batches]
    model.train(mode)
    return (sum(p[0] for p in parts) / sum(p[2] for p in parts)).item()

@torch.no_grad()
def generate(ids, count):
    mode = model.training
    model.eval()
    logits, caches, _ = model(ids)
    for i in range(count):
        nxt = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat((ids, nxt), dim=1)
        if i + 1 < count:
            logits, caches, _ = model(nxt, caches)
    model.train(mode)
    return ids

@torch.no_grad()
def cached(ids):
    mode = model.training
    model.eval()
    caches, rows = None, []
    for t in range(ids.shape[1]):
        logits, caches, _ = model(ids[:, t:t + 1], caches)
        rows.append(logits)
    model.train(mode)
    return torch.cat(rows, dim=1)

def texts(lengths):
    ids = torch.full((len(lengths), max(lengths) + 2), PAD)
    for r, n in enumerate(lengths):
        ids[r, 0], ids[r, 1:n + 1], ids[r, n + 1] = BOS, torch.randint(3, args.vocab, (n,)), EOS
    return ids

args = Args()
model = MoETransformer(args)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01)
batch = texts([10, 4, 7, 9, 3, 6])
forward = lambda ids: model(ids)[0]
kind, pad_id, start_id, eos_id = "causal", PAD, BOS, EOS

if __name__ == "__main__":
    for _ in range(30):
        train_step(batch)
    print(evaluate([batch]), generate(batch[:2, :4], 5).tolist())

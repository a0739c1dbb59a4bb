# A tiny Llama for two-digit sums ("17+5=22"), with a preallocated key/value cache.  Prompts are padded on the LEFT,
# so that in a batch of different lengths the next token always comes at the same column.
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2024)

class Args:
    dim, n_layers, n_heads, n_kv_heads, hidden = 32, 2, 4, 2, 88
    norm_eps, rope_theta, dropout = 1e-5, 10000.0, 0.1
    max_batch, max_seq = 32, 32

PAD, BOS, EOS = 0, 1, 2
SYMBOLS = "0123456789+="
VOCAB = 3 + len(SYMBOLS)

def tokenize(texts: list[str], bos: bool = True, eos: bool = True) -> torch.Tensor:
    rows = [[BOS] * bos + [3 + SYMBOLS.index(c) for c in t] + [EOS] * eos for t in texts]
    longest = max(len(r) for r in rows)
    return torch.tensor([[PAD] * (longest - len(r)) + r for r in rows])

class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))
    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))

def precompute_freqs_cis(dim: int, end: int, theta: float) -> torch.Tensor:
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angles = torch.outer(torch.arange(end).float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)

def rotate(x: torch.Tensor, freqs_cis: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis.unsqueeze(2)).flatten(3)

class Attention(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.n_heads, self.n_kv, self.hd = a.n_heads, a.n_kv_heads, a.dim // a.n_heads
        self.wq = nn.Linear(a.dim, a.n_heads * self.hd, bias=False)
        self.wk = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wv = nn.Linear(a.dim, a.n_kv_heads * self.hd, bias=False)
        self.wo = nn.Linear(a.n_heads * self.hd, a.dim, bias=False)
        shape = (a.max_batch, a.max_seq, a.n_kv_heads, self.hd)
        self.register_buffer("cache_k", torch.zeros(shape), persistent=False)
        self.register_buffer("cache_v", torch.zeros(shape), persistent=False)
    def forward(self, x, freqs_cis, mask, start_pos: Optional[int]):
        bsz, seqlen, _ = x.shape
        q = rotate(self.wq(x).view(bsz, seqlen, self.n_heads, self.hd), freqs_cis)
        k = rotate(self.wk(x).view(bsz, seqlen, self.n_kv, self.hd), freqs_cis)
        v = self.wv(x).view(bsz, seqlen, self.n_kv, self.hd)
        if start_pos is not None:
            self.cache_k[:bsz, start_pos:start_pos + seqlen] = k
            self.cache_v[:bsz, start_pos:start_pos + seqlen] = v
            k, v = self.cache_k[:bsz, :start_pos + seqlen], self.cache_v[:bsz, :start_pos + seqlen]
        k = k.repeat_interleave(self.n_heads // self.n_kv, dim=2)
        v = v.repeat_interleave(self.n_heads // self.n_kv, dim=2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.hd ** 0.5
        scores = scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
        out = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        return self.wo(out.reshape(bsz, seqlen, -1))

class Block(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.attention = Attention(a)
        self.w1, self.w3 = nn.Linear(a.dim, a.hidden, bias=False), nn.Linear(a.dim, a.hidden, bias=False)
        self.w2 = nn.Linear(a.hidden, a.dim, bias=False)
        self.attention_norm, self.ffn_norm = RMSNorm(a.dim, a.norm_eps), RMSNorm(a.dim, a.norm_eps)
        self.drop = nn.Dropout(a.dropout)
    def forward(self, x, freqs_cis, mask, start_pos):
        h = x + self.drop(self.attention(self.attention_norm(x), freqs_cis, mask, start_pos))
        y = self.ffn_norm(h)
        return h + self.drop(self.w2(F.silu(self.w1(y)) * self.w3(y)))

class Llama(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCAB, a.dim)
        self.layers = nn.ModuleList([Block(a) for _ in range(a.n_layers)])
        self.norm, self.output = RMSNorm(a.dim, a.norm_eps), nn.Linear(a.dim, VOCAB, bias=False)
        self.register_buffer("freqs_cis", precompute_freqs_cis(a.dim // a.n_heads, a.max_seq, a.rope_theta), False)
        self.register_buffer("cache_real", torch.zeros(a.max_batch, a.max_seq, dtype=torch.bool), False)
    def forward(self, tokens, start_pos: Optional[int] = None):
        """Without start_pos: the whole text at once. With it: tokens continue what the cache holds."""
        bsz, seqlen = tokens.shape
        begin, real = start_pos or 0, tokens != PAD
        if start_pos is not None:
            self.cache_real[:bsz, begin:begin + seqlen] = real
            real = self.cache_real[:bsz, :begin + seqlen]
        positions = (real.long().cumsum(1) - 1).clamp(min=0)[:, begin:]  # count real tokens only
        at, seen = torch.arange(begin, begin + seqlen)[:, None], torch.arange(begin + seqlen)[None]
        mask = (seen <= at) & (real.unsqueeze(1) | (seen == at))  # padding may see itself, so no row is empty
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.freqs_cis[positions], mask, start_pos)
        return self.output(self.norm(h))

model = Llama(Args())
matrices = [p for p in model.parameters() if p.dim() > 1]
gains = [p for p in model.parameters() if p.dim() == 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}],
                              lr=2e-3, betas=(0.9, 0.95))

def token_losses(tokens):
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    keep = (inputs != PAD) & (targets != PAD)
    return F.cross_entropy(model(inputs)[keep], targets[keep], reduction="none")

def loss(tokens):
    return token_losses(tokens).mean()

def train_step(tokens):
    model.train()
    optimizer.zero_grad()
    value = loss(tokens)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return value.item()

@torch.no_grad()
def evaluate(batches):
    was, _ = model.training, model.eval()
    losses = torch.cat([token_losses(tokens) for tokens in batches])
    model.train(was)
    return losses.mean().item()

@torch.no_grad()
def cached(tokens):
    was, _ = model.training, model.eval()
    logits = torch.cat([model(tokens[:, t:t + 1], t) for t in range(tokens.size(1))], dim=1)
    model.train(was)
    return logits

@torch.no_grad()
def generate(tokens, count):
    was, _ = model.training, model.eval()
    start_pos, new = 0, tokens
    for _ in range(count):
        logits = model(new, start_pos)
        start_pos += new.size(1)
        new = logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, new], dim=1)
    model.train(was)
    return tokens

temperature = 0.7

@torch.no_grad()
def sample(tokens):
    was, _ = model.training, model.eval()
    logits = model(tokens)[:, -1] / temperature
    model.train(was)
    return torch.multinomial(torch.softmax(logits, dim=-1), 1).squeeze(1)

kind, pad_id, eos_id, start_id, max_length = "causal", PAD, EOS, BOS, Args.max_seq
batch = (tokenize(["17+5=22", "3+4=7", "60+39=99", "8+12=20", "9+9=18", "41+1=42"]),)

if __name__ == "__main__":
    for step in range(150):
        x = torch.randint(0, 50, (16, 2)).tolist()
        value = train_step(tokenize([f"{a}+{b}={a + b}" for a, b in x]))
    print(value, evaluate([batch[0], tokenize(["1+1=2"])]), generate(tokenize(["12+30=", "2+2="], eos=False), 3))

# Sums, digit by digit. Nothing about the optimiser is borrowed: AdamW, the clipping and the
# accumulation are written out below, because I wanted to see every number that moves a weight.
# %%
import functools, math
from typing import Dict, NamedTuple, Optional
import torch
from torch import Tensor, nn
from torch.nn import functional as F

torch.manual_seed(2024)
SIGNS = "0123456789+="
START, END, PAD = 12, 13, 14
class Setup(NamedTuple):
    signs: int = 15; width: int = 48; heads: int = 4; depth: int = 2
    hidden: int = 96; drop: float = 0.1; longest: int = 32
def sums(n: int, dice: torch.Generator) -> Tensor:
    pairs = torch.randint(0, 100, (n, 2), generator=dice).tolist()
    pairs = [(a % 10, b) if i % 3 == 0 else (a, b * 7) for i, (a, b) in enumerate(pairs)]
    rows = [[START] + [SIGNS.index(c) for c in f"{a}+{b}={a + b}"] + [END] for a, b in pairs]
    return torch.tensor([r + [PAD] * (max(map(len, rows)) - len(r)) for r in rows])
# %% the model
class Rms(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
def angles(first: int, count: int, size: int) -> Tensor:
    speed = 10000.0 ** (-torch.arange(0, size, 2) / size)
    turns = torch.outer(torch.arange(first, first + count).float(), speed)
    return torch.cat([turns, turns], -1)
def rotate(x: Tensor, angle: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * angle.cos() + torch.cat([-right, left], -1) * angle.sin()
class Layer(nn.Module):
    def __init__(self, c: Setup):
        super().__init__()
        self.heads, self.drop = c.heads, c.drop
        self.rms_mix, self.rms_mlp = Rms(c.width), Rms(c.width)
        self.qkv = nn.Linear(c.width, 3 * c.width, bias=False)
        self.out = nn.Linear(c.width, c.width, bias=False)
        self.up, self.down = nn.Linear(c.width, c.hidden, bias=False), nn.Linear(c.hidden, c.width, bias=False)
    def mix(self, x: Tensor, angle: Tensor, seen: Tensor, past: Optional[Dict]) -> Tensor:
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, angle), rotate(k, angle)
        if past is not None:
            if "k" in past:
                k, v = torch.cat([past["k"], k], 2), torch.cat([past["v"], v], 2)
            past["k"], past["v"] = k, v
        score = (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~seen, torch.finfo(x.dtype).min)
        share = F.dropout(score.softmax(-1), self.drop, self.training)
        return self.out((share @ v).transpose(1, 2).reshape(rows, length, width))
    def forward(self, x: Tensor, angle: Tensor, seen: Tensor, past: Optional[Dict]) -> Tensor:
        x = x + F.dropout(self.mix(self.rms_mix(x), angle, seen, past), self.drop, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.rms_mlp(x)))), self.drop, self.training)
class Adder(nn.Module):
    def __init__(self, c: Setup):
        super().__init__()
        self.c = c
        self.signs = nn.Embedding(c.signs, c.width)
        self.layers = nn.ModuleList([Layer(c) for _ in range(c.depth)])
        self.rms_end, self.head = Rms(c.width), nn.Linear(c.width, c.signs, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=p.size(1) ** -0.5)
            if name.endswith(("out.weight", "down.weight")):
                p.data.mul_((2 * c.depth) ** -0.5)
        nn.init.normal_(self.head.weight, std=0.02)
    def forward(self, ids: Tensor, past: Optional[Dict] = None, first: int = 0) -> Tensor:
        real = ids != PAD
        if past is not None:
            real = past["real"] = torch.cat([past["real"], real], 1) if "real" in past else real
        new, total = ids.size(1), real.size(1)
        upto = torch.ones(new, total, dtype=torch.bool).tril(total - new)
        itself = torch.ones(new, total, dtype=torch.bool).triu(total - new).tril(total - new)
        seen = (upto & (real[:, None, :] | itself))[:, None]
        x, angle = F.dropout(self.signs(ids), self.c.drop, self.training), angles(first, new, self.c.width // self.c.heads)
        for n, layer in enumerate(self.layers):
            x = layer(x, angle, seen, None if past is None else past.setdefault(n, {}))
        return self.head(self.rms_end(x))
setup = Setup(); model = Adder(setup)
# %% the optimiser, from Loshchilov and Hutter's algorithm 2
class AdamWByHand(torch.optim.Optimizer):
    def __init__(self, groups, lr: float, betas=(0.9, 0.98), eps: float = 1e-8):
        super().__init__(groups, dict(lr=lr, betas=betas, eps=eps, weight_decay=0.0))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
            for p in (p for p in group["params"] if p.grad is not None):
                s, g = self.state[p], p.grad
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"].mul_(b1).add_(g, alpha=1 - b1)
                s["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                m_hat, v_hat = s["m"] / (1 - b1 ** s["t"]), s["v"] / (1 - b2 ** s["t"])
                p.mul_(1 - lr * decay)
                p.sub_(lr * m_hat / (v_hat.sqrt() + group["eps"]))
steps, warm, peak, low, temperature = 60, 10, 4e-3, 4e-4, 0.7
def schedule(step: int) -> float:
    if step < warm:
        return peak * (step + 1) / warm
    done = min(1.0, (step - warm) / (steps - warm))
    return low + 0.5 * (peak - low) * (1 + math.cos(math.pi * done))
gains = [p for p in model.parameters() if p.dim() < 2]
tables = [p for p in model.parameters() if p.dim() >= 2]
optimizer = AdamWByHand([{"params": tables, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}], schedule(0))
# %% loss, one step, the number I report
def summed(ids: Tensor):
    given, wanted = ids[:, :-1], ids[:, 1:]
    counts = (given != PAD) & (wanted != PAD)
    each = F.cross_entropy(model(given).transpose(1, 2), wanted, reduction="none")
    return (each * counts).sum(), counts.sum()
def loss(ids: Tensor) -> Tensor:
    total, count = summed(ids)
    return total / count
def clip(limit: float):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.sqrt(sum(g.pow(2).sum() for g in grads))
    for g in grads:
        g.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))
def train_step(ids: Tensor, at_once: int = 2) -> float:
    model.train()
    optimizer.zero_grad()
    everything = ((ids[:, :-1] != PAD) & (ids[:, 1:] != PAD)).sum()
    reported = 0.0
    for part in ids.split(at_once):
        value = summed(part)[0] / everything
        value.backward()
        reported += value.item()
    clip(0.5)
    optimizer.step()
    return reported
def quietly(f):
    @functools.wraps(f)
    def inner(*args):
        mode = model.training
        model.eval()
        with torch.no_grad():
            answer = f(*args)
        model.train(mode)
        return answer
    return inner
@quietly
def evaluate(batches) -> float:
    pairs = [summed(b if torch.is_tensor(b) else b[0]) for b in batches]
    return (sum(t for t, _ in pairs) / sum(n for _, n in pairs)).item()
# %% writing on
@quietly
def generate(ids: Tensor, count: int) -> Tensor:
    past, first, fresh = {}, 0, ids
    for _ in range(count):
        logits = model(fresh, past, first)[:, -1]
        first += fresh.size(1)
        fresh = logits.argmax(-1, keepdim=True)
        ids = torch.cat([ids, fresh], 1)
    return ids
@quietly
def cached(ids: Tensor) -> Tensor:
    past: Dict = {}
    return torch.cat([model(ids[:, t:t + 1], past, t) for t in range(ids.size(1))], 1)
@quietly
def sample(ids: Tensor) -> Tensor:
    chance = (model(ids)[:, -1] / temperature).softmax(-1)
    return torch.cat([ids, torch.multinomial(chance, 1)], 1)
if __name__ == "__main__":
    dice = torch.Generator().manual_seed(1)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        value = train_step(sums(32, dice), 8)
        if step % 20 == 19:
            print(f"{step + 1:3d} {value:.3f} {evaluate([sums(64, dice)]):.3f}")
# %% what you asked for
batch = sums(8, torch.Generator().manual_seed(5))
kind, pad_id, start_id, end_id, eos_id, max_length, padding_side = "causal", PAD, START, END, END, setup.longest, "right"

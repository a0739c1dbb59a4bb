# Toy translator (word -> its digit, in reverse order).  Post-norm Transformer, einsum all the way.
# shapes: b batch, t query position, s key position, d model, h head, k per-head, v vocabulary
import math
import torch
from torch import einsum, nn
from torch.nn import functional as F

PAD, BOS, EOS = 0, 1, 2
V, D, H, FF, LAYERS, P, MAXLEN = 40, 32, 4, 64, 2, 0.1, 32
EPS, FACTOR, WARMUP, steps = 0.1, 0.1, 20, 80

def sinusoids(length, d):
    freq = torch.exp(torch.arange(d // 2) * (-math.log(10000.0) / (d // 2)))
    angle = einsum("t,f->tf", torch.arange(length).float(), freq)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)

class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.empty(D, H, D // H)) for _ in range(3))
        self.o = nn.Parameter(torch.empty(H, D // H, D))
        for w in (self.q, self.k, self.v):
            nn.init.xavier_uniform_(w.data.view(D, D))
        nn.init.xavier_uniform_(self.o.data.view(D, D))
        self.scale = (D // H) ** -0.5
    def forward(self, x, memory, visible, cache=None):
        q = einsum("btd,dhk->bhtk", x, self.q)
        k = einsum("bsd,dhk->bhsk", memory, self.k)
        v = einsum("bsd,dhk->bhsk", memory, self.v)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache.update(k=k, v=v)
        score = einsum("bhtk,bhsk->bhts", q, k) * self.scale
        score = score.masked_fill(~visible, -1e9)
        weight = F.dropout(score.softmax(dim=-1), P, self.training)
        mixed = einsum("bhts,bhsk->bthk", weight, v)
        return einsum("bthk,hkd->btd", mixed, self.o)

class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, FF), nn.Linear(FF, D)
    def forward(self, x):
        return self.down(self.up(x).relu())

class AddNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
    def forward(self, x, y):
        return self.norm(x + F.dropout(y, P, self.training))

class Encoder(nn.Module):
    def __init__(self, ff):
        super().__init__()
        self.att, self.ff, self.n1, self.n2 = Attend(), ff, AddNorm(), AddNorm()
    def forward(self, x, visible):
        x = self.n1(x, self.att(x, x, visible))
        return self.n2(x, self.ff(x))

class Decoder(nn.Module):
    def __init__(self, ff):
        super().__init__()
        self.att, self.cross, self.ff = Attend(), Attend(), ff
        self.n1, self.n2, self.n3 = AddNorm(), AddNorm(), AddNorm()
    def forward(self, x, visible, memory, memory_visible, cache=None):
        x = self.n1(x, self.att(x, x, visible, cache))
        x = self.n2(x, self.cross(x, memory, memory_visible))
        return self.n3(x, self.ff(x))

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(V, D) * D ** -0.5)  # source, target and output words in one
        self.enc = nn.ModuleList([Encoder(FeedForward()) for _ in range(LAYERS)])
        self.dec = nn.ModuleList([Decoder(FeedForward()) for _ in range(LAYERS)])
        self.register_buffer("pe", sinusoids(MAXLEN, D))
    def words(self, ids, start=0):
        x = self.table[ids] * math.sqrt(D)
        x = x + self.pe[start:start + x.shape[1]]
        return F.dropout(x, P, self.training)
    def encode(self, src):
        visible = src.ne(PAD)[:, None, None, :]
        x = self.words(src)
        for layer in self.enc:
            x = layer(x, visible)
        return x, visible
    def decode(self, tgt, memory, memory_visible, cache=None):
        """With a cache, tgt is everything so far and only what is new is computed."""
        start = cache["length"] if cache else 0
        n = tgt.shape[1]
        visible = torch.ones(n, n, dtype=torch.bool).tril()[start:] & tgt.ne(PAD)[:, None, None, :]
        x = self.words(tgt[:, start:], start)
        for i, layer in enumerate(self.dec):
            x = layer(x, visible, memory, memory_visible, cache[i] if cache else None)
        if cache:
            cache["length"] = n
        return einsum("btd,vd->btv", x, self.table)
    def forward(self, src, tgt):
        memory, memory_visible = self.encode(src)
        return self.decode(tgt, memory, memory_visible)

def new_cache():
    return {"length": 0, **{i: {} for i in range(LAYERS)}}

def smoothed(logits, gold, eps):
    logp = logits.log_softmax(-1)
    hit = -logp.gather(-1, gold.unsqueeze(-1)).squeeze(-1)
    each = (1 - eps) * hit - eps * logp.mean(-1)
    real = gold.ne(PAD)
    return (each * real).sum() / real.sum()

def loss(src, tgt):
    return smoothed(model(src, tgt[:, :-1]), tgt[:, 1:], EPS)

def schedule(step):
    n = step + 1
    return FACTOR * D ** -0.5 * min(n ** -0.5, n * WARMUP ** -1.5)

def train_step(src, tgt):
    optimizer.zero_grad()
    value = loss(src, tgt)
    value.backward()
    optimizer.step()
    noam.step()
    return float(value.detach())

def evaluate(batches):
    was_training = model.training
    model.eval()
    total = words = 0
    with torch.no_grad():
        for src, tgt in batches:
            n = tgt[:, 1:].ne(PAD).sum()
            total = total + smoothed(model(src, tgt[:, :-1]), tgt[:, 1:], 0.0) * n
            words = words + n
    model.train(was_training)
    return float(total / words)

@torch.no_grad()
def generate(src, ids, count):
    was_training = model.training
    model.eval()
    memory, cache = model.encode(src), new_cache()
    for _ in range(count):
        nxt = model.decode(ids, *memory, cache)[:, -1].argmax(-1)
        ids = torch.cat([ids, nxt[:, None]], 1)
    model.train(was_training)
    return ids

@torch.no_grad()
def cached(src, tgt):
    was_training = model.training
    model.eval()
    memory, cache = model.encode(src), new_cache()
    out = torch.cat([model.decode(tgt[:, :i + 1], *memory, cache) for i in range(tgt.shape[1])], 1)
    model.train(was_training)
    return out

def pairs(n):
    """Source: 3..12 "words" 13..39; target: each word's digit (3..12), in reverse order."""
    src, tgt = [], []
    for _ in range(n):
        w = torch.randint(13, 40, (int(torch.randint(3, 13, ())),))
        src.append(torch.cat([w, torch.tensor([EOS])]))
        tgt.append(torch.cat([torch.tensor([BOS]), 3 + w.flip(0) % 10, torch.tensor([EOS])]))
    return tuple(nn.utils.rnn.pad_sequence(x, batch_first=True, padding_value=PAD) for x in (src, tgt))

torch.manual_seed(11)
batch = pairs(6)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
noam = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
kind, pad_id, eos_id, start_id, max_length = "translator", PAD, EOS, BOS, MAXLEN

if __name__ == "__main__":
    for step in range(steps):
        train_step(*pairs(16))
        if step % 20 == 0:
            print(step, evaluate([batch]))
    print(generate(batch[0][:1], torch.tensor([[BOS]]), 8).tolist())

"""
CS 4701, homework 5, REFERENCE SOLUTION (TA copy, please do not post).
Letters in, letters out: an encoder-decoder that turns English words into Pig Latin.
As in the hand-out, you may use nn.Parameter and matrix products and nothing else from torch.nn:
every matrix of every layer is written down in __init__, the layers stacked along the first axis.
    B words, S letters of the source, T letters of the target, D width, H heads, N layers
"""
import math, random
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(11); torch.manual_seed(11)
PAD, BOS, EOS = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NSYM = 3 + len(LETTERS)
LONGEST = 24
WORDS = """apple bread chair dance eagle flower green house island jungle knife lemon mouse night orange
           paper queen river stone table under violin water yellow zebra bridge cloud dream school thumb
           window spring street plant glove shrimp at it by no up cat dog sun a""".split()

def pig_latin(word):
    k = next((i for i, c in enumerate(word) if c in "aeiouy"), 0)
    return word[k:] + word[:k] + "ay"

def stack(rows):
    wide = max(len(r) for r in rows)
    return torch.tensor([r + [PAD] * (wide - len(r)) for r in rows])

def make_batch(words):
    letters = lambda w: [3 + LETTERS.index(c) for c in w]
    source = stack([letters(w) + [EOS] for w in words])
    target = stack([[BOS] + letters(pig_latin(w)) + [EOS] for w in words])
    return source, target

class PigLatin(nn.Module):
    def __init__(self, D=32, H=4, FF=64, N=2, drop=0.1):
        super().__init__()
        self.D, self.H, self.N, self.drop = D, H, N, drop

        def mat(*shape):                                   # (..., in, out), variance 1 / in
            return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-2]))

        def const(value, *shape):
            return nn.Parameter(torch.full(shape, float(value)))

        self.E_src = nn.Parameter(torch.randn(NSYM, D) / math.sqrt(D))
        self.E_tgt = nn.Parameter(torch.randn(NSYM, D) / math.sqrt(D))
        # encoder: self-attention (Q K V O), then the feed-forward part, then gains and shifts of its 2 norms
        self.eQ, self.eK, self.eV, self.eO = mat(N, D, D), mat(N, D, D), mat(N, D, D), mat(N, D, D)
        self.eW1, self.eb1, self.eW2, self.eb2 = mat(N, D, FF), const(0, N, FF), mat(N, FF, D), const(0, N, D)
        self.eg, self.es = const(1, N, 2, D), const(0, N, 2, D)
        # decoder: self-attention, attention to the memory, feed-forward, 3 norms
        self.dQ, self.dK, self.dV, self.dO = mat(N, D, D), mat(N, D, D), mat(N, D, D), mat(N, D, D)
        self.mQ, self.mK, self.mV, self.mO = mat(N, D, D), mat(N, D, D), mat(N, D, D), mat(N, D, D)
        self.dW1, self.db1, self.dW2, self.db2 = mat(N, D, FF), const(0, N, FF), mat(N, FF, D), const(0, N, D)
        self.dg, self.ds = const(1, N, 3, D), const(0, N, 3, D)
        self.W_out = nn.Parameter(0.02 * torch.randn(D, NSYM))
        self.b_out = const(0, NSYM)
        two_i = torch.arange(0, D, 2)
        rate = 1.0 / 10000.0 ** (two_i / D)
        angle = torch.arange(LONGEST).unsqueeze(1) * rate
        self.register_buffer("pos", torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(LONGEST, D))

    def dropped(self, x):
        return F.dropout(x, self.drop, self.training)

    def norm(self, x, gain, shift):
        centred = x - x.mean(-1, keepdim=True)
        spread = centred.pow(2).mean(-1, keepdim=True)
        return gain * centred / torch.sqrt(spread + 1e-5) + shift

    def attend(self, x, y, Q, K, V, O, hidden):
        """x asks, y answers; `hidden` is True where x may not look."""
        B, T, S, dk = x.size(0), x.size(1), y.size(1), self.D // self.H
        q = (x @ Q).reshape(B, T, self.H, dk).transpose(1, 2)
        k = (y @ K).reshape(B, S, self.H, dk).transpose(1, 2)
        v = (y @ V).reshape(B, S, self.H, dk).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / math.sqrt(dk)
        alpha = scores.masked_fill(hidden, -1e9).softmax(dim=3)
        heads = self.dropped(alpha) @ v                    # (B, H, T, dk)
        return heads.transpose(1, 2).reshape(B, T, self.D) @ O

    def embed(self, table, ids):
        return self.dropped(table[ids] * math.sqrt(self.D) + self.pos[: ids.size(1)])

    def encode(self, source):
        hidden = (source == PAD)[:, None, None, :]
        x = self.embed(self.E_src, source)
        for n in range(self.N):
            a = self.attend(x, x, self.eQ[n], self.eK[n], self.eV[n], self.eO[n], hidden)
            y = self.norm(x + self.dropped(a), self.eg[n, 0], self.es[n, 0])
            f = torch.relu(y @ self.eW1[n] + self.eb1[n]) @ self.eW2[n] + self.eb2[n]
            x = self.norm(y + self.dropped(f), self.eg[n, 1], self.es[n, 1])
        return x, hidden

    def decode(self, target, memory, hidden):
        T = target.size(1)
        later = torch.ones(T, T, dtype=torch.bool).triu(1)
        ahead = later | (target == PAD)[:, None, None, :]
        x = self.embed(self.E_tgt, target)
        for n in range(self.N):
            a = self.attend(x, x, self.dQ[n], self.dK[n], self.dV[n], self.dO[n], ahead)
            y = self.norm(x + self.dropped(a), self.dg[n, 0], self.ds[n, 0])
            c = self.attend(y, memory, self.mQ[n], self.mK[n], self.mV[n], self.mO[n], hidden)
            z = self.norm(y + self.dropped(c), self.dg[n, 1], self.ds[n, 1])
            f = torch.relu(z @ self.dW1[n] + self.db1[n]) @ self.dW2[n] + self.db2[n]
            x = self.norm(z + self.dropped(f), self.dg[n, 2], self.ds[n, 2])
        return x @ self.W_out + self.b_out

    def forward(self, source, target):
        memory, hidden = self.encode(source)
        return self.decode(target, memory, hidden)

model, steps, warm = PigLatin(), 60, 15
def schedule(step):
    s = step + 1
    return 0.2 * model.D ** -0.5 * min(s ** -0.5, s * warm ** -1.5)

optimizer = torch.optim.Adam(model.parameters(), lr=schedule(0), betas=(0.9, 0.98), eps=1e-9)

def loss(source, target):
    logits = model(source, target[:, :-1])
    return F.cross_entropy(logits.reshape(-1, NSYM), target[:, 1:].reshape(-1), ignore_index=PAD)

def train_step(source, target):
    value = loss(source, target)
    optimizer.zero_grad()
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return value.item()

@torch.no_grad()
def evaluate(batches):
    before = model.training
    model.eval()
    total, letters = 0.0, 0
    for source, target in batches:
        n = (target[:, 1:] != PAD).sum().item()
        total += loss(source, target).item() * n
        letters += n
    model.train(before)
    return total / letters

@torch.no_grad()
def generate(source, count):
    """the most likely letter, `count` times; BOS comes first, as in training"""
    before = model.training
    model.eval()
    memory, hidden = model.encode(source)
    out = torch.full((source.size(0), 1), BOS)
    for _ in range(count):
        best = model.decode(out, memory, hidden)[:, -1].argmax(-1, keepdim=True)
        out = torch.cat([out, best], dim=1)
    model.train(before)
    return out

if __name__ == "__main__":
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        value = train_step(*make_batch(random.sample(WORDS, 16)))
        if step % 20 == 19:
            print(step + 1, round(value, 3), round(evaluate([make_batch(WORDS)]), 3))

# handed in with the solution
batch = make_batch(["school", "at", "orange", "thumb", "by", "shrimp"])
kind, pad_id, eos_id, start_id, max_length, padding_side = "translator", PAD, EOS, BOS, LONGEST, "right"

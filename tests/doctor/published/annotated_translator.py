"""CS-585 homework 4: "Attention is all you need" for a toy language pair (words come out reversed and re-spelled)."""
import copy, math, random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB = TGT_VOCAB = 24
D_MODEL, D_FF, HEADS, LAYERS, DROPOUT, MAX_LEN = 32, 64, 4, 2, 0.1, 20
SMOOTHING, WARMUP, FACTOR, TOTAL_STEPS = 0.1, 40, 0.1, 160

random.seed(585), torch.manual_seed(585)
def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, dropout):
        super().__init__()
        self.d_k, self.heads = d_model // heads, heads
        self.w_q, self.w_k, self.w_v, self.w_o = clones(nn.Linear(d_model, d_model), 4)
        self.dropout = nn.Dropout(dropout)
    def forward(self, query, key, value, mask=None):
        n = query.size(0)
        q = self.w_q(query).view(n, -1, self.heads, self.d_k).transpose(1, 2)
        k = self.w_k(key).view(n, -1, self.heads, self.d_k).transpose(1, 2)
        v = self.w_v(value).view(n, -1, self.heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = self.dropout(scores.softmax(dim=-1))
        x = torch.matmul(weights, v)
        x = x.transpose(1, 2).reshape(n, -1, self.heads * self.d_k)
        return self.w_o(x)

class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(max_len).unsqueeze(1).float()
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))
    def forward(self, x):
        return self.dropout(x + self.pe[:, :x.size(1)])
def feed_forward():
    return nn.Sequential(nn.Linear(D_MODEL, D_FF), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(D_FF, D_MODEL))

class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.ff = MultiHeadAttention(D_MODEL, HEADS, DROPOUT), feed_forward()
        self.norm1, self.norm2 = clones(nn.LayerNorm(D_MODEL), 2)
        self.drop = nn.Dropout(DROPOUT)
    def forward(self, x, src_mask):
        attended = self.norm1(x + self.drop(self.self_attn(x, x, x, src_mask)))
        return self.norm2(attended + self.drop(self.ff(attended)))

class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.cross_attn = clones(MultiHeadAttention(D_MODEL, HEADS, DROPOUT), 2)
        self.ff = feed_forward()
        self.norm1, self.norm2, self.norm3 = clones(nn.LayerNorm(D_MODEL), 3)
        self.drop = nn.Dropout(DROPOUT)
    def forward(self, x, memory, src_mask, tgt_mask):
        own = self.drop(self.self_attn(x, x, x, tgt_mask))
        x = self.norm1(x + own)
        x = self.norm2(x + self.drop(self.cross_attn(x, memory, memory, src_mask)))
        return self.norm3(x + self.drop(self.ff(x)))
def source_mask(src):
    return (src != PAD)[:, None, None, :]
def subsequent_mask(size):
    return torch.triu(torch.ones(1, 1, size, size), diagonal=1) == 0
def target_mask(tgt):
    return (tgt != PAD)[:, None, None, :] & subsequent_mask(tgt.size(1))

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_embed, self.tgt_embed = nn.Embedding(SRC_VOCAB, D_MODEL), nn.Embedding(TGT_VOCAB, D_MODEL)
        self.position = PositionalEncoding(D_MODEL, DROPOUT, MAX_LEN)
        self.encoder, self.decoder = clones(EncoderLayer(), LAYERS), clones(DecoderLayer(), LAYERS)
        self.generator = nn.Linear(D_MODEL, TGT_VOCAB)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
    def encode(self, src, src_mask):
        x = self.position(self.src_embed(src) * math.sqrt(D_MODEL))
        for layer in self.encoder:
            x = layer(x, src_mask)
        return x
    def decode(self, memory, src_mask, tgt, tgt_mask):
        x = self.position(self.tgt_embed(tgt) * math.sqrt(D_MODEL))
        for layer in self.decoder:
            x = layer(x, memory, src_mask, tgt_mask)
        return F.log_softmax(self.generator(x), dim=-1)
    def forward(self, src, tgt):
        return self.decode(self.encode(src, source_mask(src)), source_mask(src), tgt, target_mask(tgt))
def smoothed_loss(log_probs, target):
    """Sum of KL(smoothed target || model) over the real target tokens; padding gets no probability and no weight."""
    truth = torch.full_like(log_probs, SMOOTHING / (TGT_VOCAB - 2))
    truth.scatter_(-1, target.unsqueeze(-1), 1.0 - SMOOTHING)
    truth[..., PAD] = 0.0
    truth = truth.masked_fill((target == PAD).unsqueeze(-1), 0.0)
    return F.kl_div(log_probs, truth, reduction="sum")
def batch_loss(src, tgt):
    gold = tgt[:, 1:]
    return smoothed_loss(model(src, tgt[:, :-1]), gold) / (gold != PAD).sum()
def noam(step):
    step = step + 1
    return FACTOR * D_MODEL ** -0.5 * min(step ** -0.5, step * WARMUP ** -1.5)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = LambdaLR(optimizer, noam)

def train_step(src, tgt):
    model.train()
    optimizer.zero_grad()
    value = batch_loss(src, tgt)
    value.backward()
    optimizer.step()
    scheduler.step()
    return value.item()

@torch.no_grad()
def validate(batches):
    was_training = model.training
    model.eval()
    total, tokens = 0.0, 0
    for src, tgt in batches:
        total += smoothed_loss(model(src, tgt[:, :-1]), tgt[:, 1:]).item()
        tokens += (tgt[:, 1:] != PAD).sum().item()
    model.train(was_training)
    return total / tokens

@torch.no_grad()
def greedy_decode(src, count):
    """BOS and `count` more target ids; a sentence that has ended is filled up with PAD."""
    was_training = model.training
    model.eval()
    src_mask = source_mask(src)
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), BOS)
    ended = torch.zeros(src.size(0), dtype=torch.bool)
    for _ in range(count):
        log_probs = model.decode(memory, src_mask, ys, target_mask(ys))
        word = log_probs[:, -1].argmax(dim=-1).masked_fill(ended, PAD)
        ended = ended | (word == EOS)
        ys = torch.cat([ys, word.unsqueeze(1)], dim=1)
    model.train(was_training)
    return ys

def make_batch(lengths):
    pairs = [[random.randrange(3, SRC_VOCAB) for _ in range(n)] for n in lengths]
    fill = lambda rows: torch.tensor([r + [PAD] * (max(map(len, rows)) - len(r)) for r in rows])
    return fill([s + [EOS] for s in pairs]), fill([[BOS] + [SRC_VOCAB + 2 - w for w in reversed(s)] + [EOS] for s in pairs])
batch = make_batch([4, 9, 6, 3, 11, 7])
kind, pad_id, eos_id, start_id, max_length = "translator", PAD, EOS, BOS, MAX_LEN
forward, loss, evaluate, generate = model, batch_loss, validate, greedy_decode
schedule, steps = noam, TOTAL_STEPS
if __name__ == "__main__":
    for epoch in range(4):
        for _ in range(TOTAL_STEPS // 4):
            train_step(*make_batch([random.randint(2, 10) for _ in range(8)]))
        print(epoch, validate([make_batch([5, 8, 3]) for _ in range(3)]))

"""Number words to digits: the Annotated Transformer, redone on nn.MultiheadAttention with batch first."""
import math, random
import torch
import torch.nn as nn

random.seed(7)
torch.manual_seed(7)
PAD, BOS, EOS = 0, 1, 2
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SRC = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>"] + ONES + TENS + ["hundred", "thousand", "and"])}
TGT = {w: i for i, w in enumerate(["<pad>", "<s>", "</s>"] + list("0123456789"))}

def spell(n):
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10 - 2]] + ([ONES[n % 10]] if n % 10 else [])
    if n < 1000:
        return [ONES[n // 100], "hundred"] + (["and"] + spell(n % 100) if n % 100 else [])
    return spell(n // 1000) + ["thousand"] + (spell(n % 1000) if n % 1000 else [])

def pad(rows):
    return torch.tensor([row + [PAD] * (max(map(len, rows)) - len(row)) for row in rows])

def make_batch(numbers):
    return (pad([[SRC[w] for w in spell(n)] + [EOS] for n in numbers]),
            pad([[BOS] + [TGT[c] for c in str(n)] + [EOS] for n in numbers]))

class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2, self.b_2, self.eps = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features)), eps
    def forward(self, x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return self.a_2 * (x - mean) / (var + self.eps) ** 0.5 + self.b_2

class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1).float()
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)
    def forward(self, x, start=0):
        return self.dropout(x + self.pe[start : start + x.size(1)])

class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout):
        super().__init__()
        self.w_1, self.w_2, self.dropout = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
    def forward(self, x):
        return self.w_2(self.dropout(self.w_1(x).relu()))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, dropout=dropout, batch_first=True)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.dropout = LayerNorm(d_model), LayerNorm(d_model), nn.Dropout(dropout)
    def forward(self, x, src_pad):
        y = self.norm1(x)
        h = x + self.dropout(self.self_attn(y, y, y, key_padding_mask=src_pad, need_weights=False)[0])
        return h + self.dropout(self.feed_forward(self.norm2(h)))

class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, heads, dropout=dropout, batch_first=True)
        self.src_attn = nn.MultiheadAttention(d_model, heads, dropout=dropout, batch_first=True)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.norm3 = LayerNorm(d_model), LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x, memory, src_pad, future=None, past=None):
        y = self.norm1(x)
        keys = y if past is None else torch.cat([past, y], 1)
        x = x + self.dropout(self.self_attn(y, keys, keys, attn_mask=future, need_weights=False)[0])
        y = self.norm2(x)
        x = x + self.dropout(self.src_attn(y, memory, memory, key_padding_mask=src_pad, need_weights=False)[0])
        return x + self.dropout(self.feed_forward(self.norm3(x))), keys

class Encoder(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout, N):
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(d_model, heads, d_ff, dropout) for _ in range(N)])
        self.norm = LayerNorm(d_model)
    def forward(self, x, src_pad):
        for layer in self.layers:
            x = layer(x, src_pad)
        return self.norm(x)

class Decoder(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout, N):
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(d_model, heads, d_ff, dropout) for _ in range(N)])
        self.norm = LayerNorm(d_model)
    def forward(self, x, memory, src_pad, future=None, pasts=None):
        kept = []
        for i, layer in enumerate(self.layers):
            x, keys = layer(x, memory, src_pad, future, pasts[i] if pasts else None)
            kept.append(keys)
        return self.norm(x), kept

class EncoderDecoder(nn.Module):
    def __init__(self, d_model=32, heads=4, d_ff=64, dropout=0.1, N=2, max_len=64):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.src_embed, self.tgt_embed = nn.Embedding(len(SRC), d_model), nn.Embedding(len(TGT), d_model)
        self.position = PositionalEncoding(d_model, dropout, max_len)
        self.encoder, self.decoder = Encoder(d_model, heads, d_ff, dropout, N), Decoder(d_model, heads, d_ff, dropout, N)
        self.generator = nn.Linear(d_model, len(TGT))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
    def encode(self, source):
        src_pad = source == PAD
        return self.encoder(self.position(self.src_embed(source) * self.scale), src_pad), src_pad
    def forward(self, source, target):
        memory, src_pad = self.encode(source)
        future = torch.ones(target.size(1), target.size(1)).triu(diagonal=1).bool()
        x, _ = self.decoder(self.position(self.tgt_embed(target) * self.scale), memory, src_pad, future)
        return self.generator(x)
    def step(self, token, index, memory, src_pad, pasts):
        x = self.position(self.tgt_embed(token) * self.scale, start=index)
        x, pasts = self.decoder(x, memory, src_pad, pasts=pasts)
        return self.generator(x), pasts

def label_smoothing(logits, labels, smoothing=0.1):
    true_dist = torch.full_like(logits, smoothing / (logits.size(-1) - 2))
    true_dist.scatter_(-1, labels.unsqueeze(-1), 1 - smoothing)
    true_dist[..., PAD] = 0.0
    per_token, keep = -(true_dist * logits.log_softmax(-1)).sum(-1), labels != PAD
    return per_token[keep].sum() / keep.sum()

model, steps, warmup = EncoderDecoder(), 60, 15
def schedule(step, factor=0.1):  # the paper's rate
    step = step + 1
    return factor * 32 ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)

def loss(source, target):
    return label_smoothing(model(source, target[:, :-1]), target[:, 1:])

def train_step(source, target):
    model.train()
    optimizer.zero_grad()
    value = loss(source, target)
    value.backward()
    optimizer.step()
    scheduler.step()
    return value.item()

@torch.no_grad()
def evaluate(batches):
    before = model.training
    model.eval()
    total, tokens = 0.0, 0
    for source, target in batches:
        logp, keep = model(source, target[:, :-1]).log_softmax(-1), target[:, 1:] != PAD
        nll = -logp.gather(-1, target[:, 1:].unsqueeze(-1)).squeeze(-1)
        total, tokens = total + nll[keep].sum().item(), tokens + (target[:, 1:] != PAD).sum().item()
    model.train(before)
    return total / tokens

@torch.no_grad()
def generate(ids, count):  # a source, or a source with the target's beginning
    before = model.training
    model.eval()
    source, out = ids if isinstance(ids, (tuple, list)) else (ids, torch.full((len(ids), 1), BOS))
    (memory, src_pad), pasts = model.encode(source), None
    for index in range(out.size(1) + count - 1):
        logits, pasts = model.step(out[:, index : index + 1], index, memory, src_pad, pasts)
        if index + 1 == out.size(1):
            out = torch.cat([out, logits[:, -1].argmax(-1, keepdim=True)], 1)
    model.train(before)
    return out

@torch.no_grad()
def cached(source, target=None):
    before = model.training
    model.eval()
    source, target = source if target is None else (source, target)
    (memory, src_pad), pasts, rows = model.encode(source), None, []
    for index in range(target.size(1)):
        logits, pasts = model.step(target[:, index : index + 1], index, memory, src_pad, pasts)
        rows.append(logits)
    model.train(before)
    return torch.cat(rows, 1)

batch, kind = make_batch([7, 42, 318, 1005, 73219, 600]), "translator"
pad_id, eos_id, start_id, max_length, padding_side = PAD, EOS, BOS, 64, "right"

if __name__ == "__main__":
    for _ in range(steps):
        train_step(*make_batch([random.randrange(10 ** random.randint(1, 5)) for _ in range(16)]))
    print("nll per digit", evaluate([batch]), generate(batch[0], 6).tolist()[:3])

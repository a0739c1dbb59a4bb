# %% [markdown]
# # Speech units -> text  |  nn.Transformer baseline  |  [train + valid]
# Sources are discrete speech units (k-means ids, longer than the text), targets are characters.

# %% Imports
import math
import random
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


# ============================ CFG ============================
class CFG:
    seed = 42
    n_units = 40        # 0 pad, 1 sos, 2 eos, then the units
    n_chars = 30        # 0 pad, 1 sos, 2 eos, then a..z and blank
    d_model = 32
    nhead = 4
    num_layers = 2
    dim_ff = 64
    dropout = 0.1
    max_len = 64
    lr = 2e-3
    warmup = 20
    epochs = 3
    steps_per_epoch = 40
    smoothing = 0.1
    max_grad_norm = 0.5


PAD, SOS, EOS = 0, 1, 2


random.seed(CFG.seed)
torch.manual_seed(CFG.seed)


# ============================ Data ============================
def encode(text):
    return [3 + (26 if c == " " else ord(c) - ord("a")) for c in text]


def fake_speech(text):
    units = []
    for c in encode(text):
        units += [3 + (5 * c) % 37] * random.randint(1, 3)      # every sound lasts 1 to 3 frames
    return units + [EOS]


def collate(rows):
    return nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD)


texts = ["good morning", "where is it", "yes", "the red train", "call me", "no rain today"]
batch = (collate([fake_speech(t) for t in texts]),
         collate([[SOS] + encode(t) + [EOS] for t in texts]))


# ============================ Model ============================
# everything inside is seq first: batch_first=False
class TokenEmbedding(nn.Embedding):
    def forward(self, tokens):
        return super().forward(tokens) * math.sqrt(self.embedding_dim)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model // 2) * (-math.log(10000.0) / (d_model // 2)))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):                                       # (L, N, D)
        return self.dropout(x + self.pe[:x.size(0)])


class SpeechTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_emb = TokenEmbedding(CFG.n_units, CFG.d_model, padding_idx=PAD)
        self.tgt_emb = TokenEmbedding(CFG.n_chars, CFG.d_model, padding_idx=PAD)
        self.subsample = nn.Conv1d(CFG.d_model, CFG.d_model, kernel_size=3, stride=2, padding=1)
        self.pos_enc = PositionalEncoding(CFG.d_model, CFG.dropout, CFG.max_len)
        self.transformer = nn.Transformer(CFG.d_model, CFG.nhead, CFG.num_layers, CFG.num_layers,
                                          CFG.dim_ff, CFG.dropout)
        self.fc_out = nn.Linear(CFG.d_model, CFG.n_chars)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        with torch.no_grad():       # xavier filled the pad rows: silence again, the conv reads over the end
            self.src_emb.weight[PAD] = 0.0
            self.tgt_emb.weight[PAD] = 0.0

    def forward(self, src, tgt):                                # (S, N), (T, N)
        src_pad = (src == PAD).T[:, ::2]                        # (N, ceil(S/2)), one per frame left
        tgt_pad = (tgt == PAD).T                                # (N, T)
        future = torch.triu(torch.ones(tgt.size(0), tgt.size(0)), diagonal=1).bool()
        frames = self.src_emb(src).permute(1, 2, 0)             # (N, D, S)
        frames = F.gelu(self.subsample(frames)).permute(2, 0, 1)
        out = self.transformer(self.pos_enc(frames), self.pos_enc(self.tgt_emb(tgt)),
                               tgt_mask=future,
                               src_key_padding_mask=src_pad, tgt_key_padding_mask=tgt_pad,
                               memory_key_padding_mask=src_pad)
        return self.fc_out(out)                                 # (T, N, n_chars)


def smooth_loss(logits, target):
    logp, keep = F.log_softmax(logits, dim=-1), target != PAD
    nll = -logp.gather(-1, target.unsqueeze(-1)).squeeze(-1).masked_fill(~keep, 0.0)
    smooth = -logp.mean(dim=-1).masked_fill(~keep, 0.0)
    return ((1 - CFG.smoothing) * nll.sum() + CFG.smoothing * smooth.sum()) / keep.sum()


model = SpeechTransformer()
optimizer = torch.optim.Adam(model.parameters(), lr=CFG.lr, betas=(0.9, 0.98), eps=1e-9)
warm = lambda step: CFG.warmup ** 0.5 * min((step + 1) ** -0.5, (step + 1) * CFG.warmup ** -1.5)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warm)


# ============================ Train / valid ============================
def loss(source, target):
    source, target = source.T, target.T
    tgt_input, tgt_output = target[:-1], target[1:]
    return smooth_loss(model(source, tgt_input), tgt_output)


def train_step(source, target):
    model.train()
    optimizer.zero_grad()
    out = loss(source, target)
    out.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CFG.max_grad_norm)
    optimizer.step()
    scheduler.step()
    return out.item()


@torch.no_grad()
def evaluate(batches):
    mode = model.training
    model.eval()
    total, n = 0.0, 0
    for source, target in batches:
        logits = model(source.T, target.T[:-1])
        total += F.cross_entropy(logits.flatten(0, 1), target.T[1:].flatten(), ignore_index=PAD, reduction="sum").item()
        n += (target[:, 1:] != PAD).sum().item()
    model.train(mode)
    return total / n


# %% What the rest of the notebook uses
kind, pad_id, eos_id, start_id, max_length = "translator", PAD, EOS, SOS, CFG.max_len
steps = CFG.epochs * CFG.steps_per_epoch
forward = lambda source, target: model(source.T, target.T).transpose(0, 1)
schedule = lambda step: CFG.lr * warm(step)

# %% Run
if __name__ == "__main__":
    for epoch in range(CFG.epochs):
        losses = [train_step(*batch) for _ in range(CFG.steps_per_epoch)]
        print(f"Epoch {epoch + 1} - train {sum(losses) / len(losses):.4f}  valid {evaluate([batch]):.4f}")

# Toy translation (spell a word backwards in the other alphabet) with the layers that torch ships.
# One joint vocabulary: ids 4..21 are the letters of the source language, 22..39 those of the target language.
import math
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

BOS, PAD, EOS, UNK = 0, 1, 2, 3
VOCAB, LETTERS = 40, 18
D_MODEL, N_HEAD, D_FF, N_LAYERS, DROPOUT = 32, 4, 64, 2, 0.1
MAX_LEN, SMOOTHING = 32, 0.1
PEAK_LR, WARMUP, STEPS = 2e-3, 30, 300


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, D_MODEL, padding_idx=PAD)
        self.head = nn.Linear(D_MODEL, VOCAB, bias=False)
        shape = dict(d_model=D_MODEL, nhead=N_HEAD, dim_feedforward=D_FF, dropout=DROPOUT)
        encoder_layer = nn.TransformerEncoderLayer(**shape, batch_first=True, norm_first=True)
        decoder_layer = nn.TransformerDecoderLayer(**shape, batch_first=True, norm_first=True)
        encoder_norm = nn.LayerNorm(D_MODEL)
        decoder_norm = nn.LayerNorm(D_MODEL)
        self.encoder = nn.TransformerEncoder(encoder_layer, N_LAYERS, encoder_norm, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder_layer, N_LAYERS, decoder_norm)
        self.dropout = nn.Dropout(DROPOUT)
        self.register_buffer("waves", self.make_waves())

        # the stacks copy one layer, so every matrix is drawn anew here
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        # source table, target table and output projection are one tensor
        nn.init.normal_(self.table.weight, std=D_MODEL ** -0.5)
        with torch.no_grad():
            self.table.weight[PAD].zero_()
        self.head.weight = self.table.weight

    @staticmethod
    def make_waves():
        exponents = torch.arange(0, D_MODEL, 2).float() / D_MODEL
        angles = torch.arange(MAX_LEN).float()[:, None] * 1e-4 ** exponents
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    def embed(self, ids):
        return self.dropout(self.table(ids) * math.sqrt(D_MODEL) + self.waves[: ids.size(1)])

    def encode(self, source):
        source_pad = source.eq(PAD)
        memory = self.encoder(self.embed(source), src_key_padding_mask=source_pad)
        return memory, source_pad

    def decode(self, target, memory, memory_pad):
        length = target.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        states = self.decoder(
            self.embed(target), memory,
            tgt_mask=future, tgt_key_padding_mask=target.eq(PAD),
            memory_key_padding_mask=memory_pad,
        )
        return self.head(states)

    def forward(self, source, target):
        return self.decode(target, *self.encode(source))


def smoothed_cross_entropy(logits, labels):
    logp = logits.log_softmax(dim=-1)
    real = labels.ne(PAD)
    hit = -logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    spread = -logp.mean(dim=-1)
    hit, spread = hit.masked_fill(~real, 0.0), spread.masked_fill(~real, 0.0)
    return ((1 - SMOOTHING) * hit.sum() + SMOOTHING * spread.sum()) / real.sum()


def loss(source, target):
    """Teacher forcing: the decoder reads BOS ... and is asked for ... EOS."""
    logits = model(source, target[:, :-1])
    return smoothed_cross_entropy(logits, target[:, 1:])


def lr_factor(step):
    """Linear warmup, then the inverse square root of the step."""
    return min((step + 1) / WARMUP, math.sqrt(WARMUP / (step + 1)))


def train_step(source, target):
    model.train()
    optimizer.zero_grad()
    value = loss(source, target)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    return value.item()


@torch.no_grad()
def evaluate(batches):
    """Cross entropy per target token over all batches, without smoothing."""
    was_training = model.training
    model.eval()
    total, tokens = 0.0, 0
    for source, target in batches:
        logits, labels = model(source, target[:, :-1]), target[:, 1:]
        total += F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=PAD, reduction="sum").item()
        tokens += labels.ne(PAD).sum().item()
    model.train(was_training)
    return total / tokens


@torch.no_grad()
def greedy(source, count):
    """The `count` likeliest next words one after another; the answer begins with BOS."""
    was_training = model.training
    model.eval()
    memory, memory_pad = model.encode(source)
    answer = source.new_full((source.size(0), 1), BOS)
    for _ in range(count):
        scores = model.decode(answer, memory, memory_pad)
        answer = torch.cat([answer, scores[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    model.train(was_training)
    return answer


@torch.no_grad()
def beam(source, width=3, limit=MAX_LEN - 2, penalty=0.6):
    """Best finished translation of one source text, by log probability over length ** penalty."""
    was_training = model.training
    model.eval()
    memory, memory_pad = model.encode(source.unsqueeze(0))
    alive, finished = [(0.0, [BOS])], []
    for _ in range(limit):
        prefixes = torch.tensor([ids for _, ids in alive])
        logp = model.decode(prefixes, memory.expand(len(alive), -1, -1), memory_pad.expand(len(alive), -1))
        logp = logp[:, -1].log_softmax(dim=-1)
        grown = []
        for (score, ids), row in zip(alive, logp):
            values, tokens = row.topk(width)
            grown += [(score + v, ids + [t]) for v, t in zip(values.tolist(), tokens.tolist())]
        grown.sort(key=lambda pair: pair[0], reverse=True)
        finished += [(s / len(ids) ** penalty, ids) for s, ids in grown[:width] if ids[-1] == EOS]
        alive = [pair for pair in grown if pair[1][-1] != EOS][:width]
        if len(finished) >= width:
            break
    model.train(was_training)
    return max(finished or alive)[1]


def make_batch(seed, texts=6):
    rng = random.Random(seed)
    words = [[rng.randrange(LETTERS) for _ in range(3 + 2 * i % 9)] for i in range(texts)]
    sources = [torch.tensor([4 + c for c in word] + [EOS]) for word in words]
    targets = [torch.tensor([BOS] + [4 + LETTERS + c for c in reversed(word)] + [EOS]) for word in words]
    return tuple(nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD) for rows in (sources, targets))


torch.manual_seed(2024)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)
batch, kind, tied = make_batch(seed=3), "translator", True
pad_id, eos_id, start_id, max_length = PAD, EOS, BOS, MAX_LEN
generate, steps = greedy, STEPS
schedule = lambda step: PEAK_LR * lr_factor(step)

if __name__ == "__main__":
    print([round(train_step(*batch), 3) for _ in range(60)][::15], evaluate([batch]), beam(batch[0][0]))

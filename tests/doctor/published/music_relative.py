"""Music events with relative attention ("skewing", Huang et al. 2018). Events: note-on/off, time shifts."""
import math
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(88)
PAD_EVENT, START_EVENT, END_EVENT, N_EVENTS = 0, 1, 2, 32
MAX_SEQ, D_MODEL, N_HEAD, N_LAYERS, D_FF, P_DROP = 32, 32, 4, 2, 96, 0.1
LR_MAX, LR_MIN, STEPS, CLIP, TEMPERATURE = 2e-3, 2e-4, 48, 0.5, 1.25


def dropout(x, p, training):
    """zeroes with probability p; what stays is scaled so that the expectation is kept"""
    if not training or p == 0.0:
        return x
    keep = (torch.rand(x.shape) >= p).to(x.dtype)
    return x * keep / (1.0 - p)


class RelativeGlobalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.d_head = D_MODEL // N_HEAD
        self.Wq = nn.Linear(D_MODEL, D_MODEL)
        self.Wk = nn.Linear(D_MODEL, D_MODEL)
        self.Wv = nn.Linear(D_MODEL, D_MODEL)
        self.fc = nn.Linear(D_MODEL, D_MODEL)
        # one row per distance, the last row is distance 0
        self.Er = nn.Parameter(torch.randn(N_HEAD, MAX_SEQ, self.d_head) * self.d_head ** -0.5)

    def split(self, x):
        return x.reshape(x.size(0), x.size(1), N_HEAD, self.d_head).permute(0, 2, 1, 3)

    def skew(self, QEr):
        """(batch, head, i, distance row) -> (batch, head, i, j); what stands above the diagonal is meaningless"""
        b, h, length, _ = QEr.shape
        padded = F.pad(QEr, (1, 0))
        return padded.reshape(b, h, length + 1, length)[:, :, 1:, :]

    def forward(self, x):
        length = x.size(1)
        q, k, v = self.split(self.Wq(x)), self.split(self.Wk(x)), self.split(self.Wv(x))
        E = self.Er[:, MAX_SEQ - length:, :]
        Srel = self.skew(torch.einsum("bhld,hmd->bhlm", q, E))
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = (torch.einsum("bhld,bhmd->bhlm", q, k) + Srel) / math.sqrt(self.d_head)
        scores = scores.masked_fill(future, float("-inf"))
        weights = dropout(scores.softmax(dim=-1), P_DROP, self.training)
        out = torch.einsum("bhlm,bhmd->bhld", weights, v)
        return self.fc(out.permute(0, 2, 1, 3).reshape(x.shape))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rga = RelativeGlobalAttention()
        self.ln_attention, self.ln_ff = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
        self.ff1, self.ff2 = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)

    def forward(self, x):
        attended = self.rga(self.ln_attention(x))
        x = x + dropout(attended, P_DROP, self.training)
        hidden = F.relu(self.ff1(self.ln_ff(x)))
        x = x + dropout(self.ff2(hidden), P_DROP, self.training)
        return x


class MusicDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.events = nn.Embedding(N_EVENTS, D_MODEL)
        nn.init.normal_(self.events.weight, std=D_MODEL ** -0.5)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(N_LAYERS))
        self.ln, self.head = nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, N_EVENTS)

    def forward(self, events):
        x = self.events(events) * math.sqrt(D_MODEL)
        x = dropout(x, P_DROP, self.training)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


def nll(events):
    """negative log-likelihood of every event after the first, zero at padding; and which of them are real"""
    logits, target = model(events[:, :-1]), events[:, 1:]
    real = (target != PAD_EVENT).float()
    log_p = logits.log_softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return -log_p * real, real


def loss(events):
    values, real = nll(events)
    return values.sum() / real.sum()


def schedule(step):
    """half a cosine over the whole training, no restarts; flat afterwards"""
    return LR_MIN + 0.5 * (LR_MAX - LR_MIN) * (1 + math.cos(math.pi * min(step / STEPS, 1.0)))


state = {"step": 0}


def train_step(events):
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = schedule(state["step"])
    optimizer.zero_grad()
    value = loss(events)
    value.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    state["step"] += 1
    return value.item()


@torch.no_grad()
def evaluate(batches):
    """perplexity per event over all batches together"""
    mode = model.training
    model.eval()
    total, count = 0.0, 0.0
    for events in batches:
        values, real = nll(events)
        total += values.sum().item()
        count += real.sum().item()
    model.train(mode)
    return math.exp(total / count)


@torch.no_grad()
def continue_piece(events, count, pick):
    mode = model.training
    model.eval()
    for _ in range(count):
        logits = model(events[:, -MAX_SEQ:])[:, -1]
        events = torch.cat([events, pick(logits)], dim=1)
    model.train(mode)
    return events


def generate(events, count):
    return continue_piece(events, count, lambda logits: logits.argmax(-1, keepdim=True))


def sample(events):
    return continue_piece(events, 1, lambda logits: torch.multinomial((logits / TEMPERATURE).softmax(-1), 1))


def pieces(lengths):
    batch = torch.full((len(lengths), max(lengths) + 2), PAD_EVENT)
    for i, n in enumerate(lengths):
        motif = torch.randint(3, N_EVENTS, (4,)).repeat(n // 4 + 1)[:n]  # a motif of four events, repeated
        batch[i, :n + 2] = torch.cat([torch.tensor([START_EVENT]), motif, torch.tensor([END_EVENT])])
    return batch


model = MusicDecoder()
optimizer = torch.optim.Adam(model.parameters(), lr=LR_MAX, betas=(0.9, 0.98), eps=1e-9)
batch = pieces([14, 6, 10, 8, 12])
kind, pad_id, start_id, eos_id, max_length = "causal", PAD_EVENT, START_EVENT, END_EVENT, MAX_SEQ
temperature, steps = TEMPERATURE, STEPS

if __name__ == "__main__":
    for _ in range(STEPS):
        train_step(batch)
    print("perplexity", evaluate([batch]))

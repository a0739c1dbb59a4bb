# names-gpt.ipynb, all cells. I followed the "let's build GPT" video and then squeezed it into one class.
import math
import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)

# ---- hyperparameters ----
block_size = 16
n_embd, n_head, n_layer = 32, 4, 2
head_size = n_embd // n_head
dropout = 0.1
max_lr, min_lr = 3e-3, 3e-4
warmup_iters, max_iters = 20, 200
weight_decay, grad_clip = 0.1, 1.0
micro_batches = 2

# ---- data: first names, 0 = padding, 1 = end of name, 2 = start of name ----
names = """emma olivia ava isabella sophia charlotte mia amelia harper evelyn abigail emily elizabeth mila ella
avery sofia camila aria scarlett victoria madison luna grace chloe penelope layla riley zoey nora lily eleanor
hannah lillian addison aubrey ellie stella natalie zoe leah hazel violet aurora savannah audrey bo jo al""".split()
PAD, END, START = 0, 1, 2
chars = sorted(set("".join(names)))
stoi = {c: i + 3 for i, c in enumerate(chars)}
vocab_size = len(chars) + 3

def encode(words):
    rows = [[START] + [stoi[c] for c in w] + [END] for w in words]
    width = max(len(r) for r in rows)
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])

train_names, val_names = names[:40], names[40:]

def get_batch(split, size=8):
    data = train_names if split == "train" else val_names
    return encode([data[i] for i in torch.randint(len(data), (size,))])

# ---- the model ----
class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        C, H, K = n_embd, n_head, head_size
        self.wte = nn.Embedding(vocab_size, C)
        self.wpe = nn.Embedding(block_size, C)
        make = lambda *shape: nn.ParameterList(nn.Parameter(torch.empty(*shape)) for _ in range(n_layer))
        self.wq, self.wk, self.wv = make(C, H, K), make(C, H, K), make(C, H, K)
        self.wo = make(H, K, C)
        self.w1, self.b1 = make(C, 4 * C), make(4 * C)
        self.w2, self.b2 = make(4 * C, C), make(C)
        self.ln1 = nn.ModuleList(nn.LayerNorm(C) for _ in range(n_layer))
        self.ln2 = nn.ModuleList(nn.LayerNorm(C) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(C)
        self.lm_head = nn.Linear(C, vocab_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        for name, p in self.named_parameters():
            if name.startswith("ln"):
                continue
            if p.dim() > 1:
                nn.init.normal_(p, mean=0.0, std=0.02)
            else:
                nn.init.zeros_(p)
        # gpt-2: the two projections that write into the residual stream start smaller
        for w in list(self.wo) + list(self.w2):
            nn.init.normal_(w, mean=0.0, std=0.02 / math.sqrt(2 * n_layer))

    def forward(self, idx, targets=None):
        B, T = idx.shape
        C, H, K = n_embd, n_head, head_size
        x = self.wte(idx) + self.wpe(torch.arange(T))
        x = F.dropout(x, dropout, training=self.training)
        for i in range(n_layer):
            h = self.ln1[i](x)
            q = torch.einsum("btc,chk->bhtk", h, self.wq[i])
            k = torch.einsum("btc,chk->bhtk", h, self.wk[i])
            v = torch.einsum("btc,chk->bhtk", h, self.wv[i])
            wei = torch.einsum("bhik,bhjk->bhij", q, k) * K ** -0.5
            wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
            wei = F.softmax(wei, dim=-1)
            wei = F.dropout(wei, dropout, training=self.training)
            y = torch.einsum("bhij,bhjk->bihk", wei, v)
            y = torch.einsum("bihk,hkc->bic", y, self.wo[i])
            x = x + F.dropout(y, dropout, training=self.training)
            h = F.gelu(self.ln2[i](x) @ self.w1[i] + self.b1[i])
            h = h @ self.w2[i] + self.b2[i]
            x = x + F.dropout(h, dropout, training=self.training)
        logits = self.lm_head(self.ln_f(x))
        if targets is None:
            return logits, None
        # sum over the real tokens, whoever calls divides by how many there are
        loss = F.cross_entropy(logits.reshape(B * T, -1), targets.reshape(B * T), ignore_index=PAD, reduction="sum")
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            idx_cond = idx[:, -block_size:]  # the position table ends at block_size
            logits, _ = self(idx_cond)
            idx_next = logits[:, -1, :].argmax(dim=-1, keepdim=True)
            idx = torch.cat((idx, idx_next), dim=1)
        self.train(was_training)
        return idx

model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay},
                               {"params": no_decay, "weight_decay": 0.0}], lr=max_lr, betas=(0.9, 0.95))

def get_lr(it):
    if it < warmup_iters:
        return max_lr * (it + 1) / (warmup_iters + 1)
    if it > max_iters:
        return min_lr
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (max_lr - min_lr)

it = 0

def train_step(text):
    global it
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    model.train()
    n = (text[:, 1:] != PAD).sum()
    total = 0.0
    optimizer.zero_grad(set_to_none=True)
    for micro in text.chunk(micro_batches):
        _, part = model(micro[:, :-1], micro[:, 1:])
        part = part / n  # n counts the whole batch, so the parts add up to its mean
        part.backward()
        total += part.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    it += 1
    return total

@torch.no_grad()
def estimate_loss(batches):
    model.eval()
    total, count = 0.0, 0
    for text in batches:
        total += model(text[:, :-1], text[:, 1:])[1].item()
        count += (text[:, 1:] != PAD).sum().item()
    model.train()
    return total / count

# ---- what I hand over ----
kind, pad_id, eos_id, start_id, max_length = "causal", PAD, END, START, block_size
batch = (encode(["olivia", "bo", "elizabeth", "mia", "charlotte", "ava"]),)
forward = lambda ids: model(ids)[0]
loss = lambda text: model(text[:, :-1], text[:, 1:])[1] / (text[:, 1:] != PAD).sum()
evaluate, generate, schedule, steps = estimate_loss, model.generate, get_lr, max_iters

if __name__ == "__main__":
    for step in range(max_iters):
        train_step(get_batch("train"))
        if step % 50 == 0:
            print(step, estimate_loss([get_batch("val") for _ in range(4)]))

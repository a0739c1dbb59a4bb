# My little GPT! Followed the video + blog post, changed it so that it works on padded sentences.
import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)

# hyperparameters
vocab_size, block_size = 26, 24
n_embd, n_head, n_layer, dropout = 32, 4, 3, 0.1
learning_rate, max_iters, eval_interval, temperature = 2e-3, 40, 20, 0.7
PAD, EOS, BOS = 0, 1, 2

class Head(nn.Module):
    """ one head of self-attention """

    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer('tril', torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)    # (B,T,hs)
        q = self.query(x)  # (B,T,hs)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5  # (B,T,T)
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float('-inf'))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        return wei @ self.value(x)

class MultiHeadAttention(nn.Module):
    """ several heads in parallel, then concatenated """

    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(head_size) for _ in range(num_heads)])
        self.proj = nn.Linear(num_heads * head_size, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        out = torch.cat([h(x) for h in self.heads], dim=-1)
        return self.dropout(self.proj(out))

class FeedForward(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd),
            nn.ReLU(),
            nn.Linear(4 * n_embd, n_embd),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)

class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.sa = MultiHeadAttention(n_head, n_embd // n_head)
        self.ffwd = FeedForward(n_embd)
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        x = x + self.ffwd(self.ln2(x))
        return x

class GPTLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        tok_emb = self.token_embedding_table(idx)                # (B,T,C)
        pos_emb = self.position_embedding_table(torch.arange(T))  # (T,C)
        x = self.blocks(tok_emb + pos_emb)
        logits = self.lm_head(self.ln_f(x))                      # (B,T,vocab_size)
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.view(B * T, -1), targets.reshape(B * T), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=None):
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            idx_cond = idx[:, -block_size:]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :]
            if temperature is None:  # greedy
                idx_next = logits.argmax(dim=-1, keepdim=True)
            else:
                probs = F.softmax(logits / temperature, dim=-1)
                idx_next = torch.multinomial(probs, num_samples=1)
            idx = torch.cat((idx, idx_next), dim=1)
        self.train(was_training)
        return idx

def get_xy(ids):
    """ y is x moved by one; the padding gets -1 so that the loss skips it """
    x, y = ids[:, :-1], ids[:, 1:]
    y = y.masked_fill(y == PAD, -1)
    return x, y

def make_sentences(lengths):
    ids = torch.full((len(lengths), max(lengths) + 2), PAD)
    for b, n in enumerate(lengths):
        start = int(torch.randint(3, vocab_size, (1,)))
        words = 3 + (start + 2 * torch.arange(n)) % (vocab_size - 3)  # counting in twos
        ids[b, :n + 2] = torch.cat([torch.tensor([BOS]), words, torch.tensor([EOS])])
    return ids

@torch.no_grad()
def estimate_loss(batches):
    model.eval()
    total, n = 0.0, 0
    for ids in batches:
        x, y = get_xy(ids)
        _, batch_loss = model(x, y)
        count = int((y != -1).sum())
        total += batch_loss.item() * count
        n += count
    model.train()
    return total / n

def train_step(ids):
    x, y = get_xy(ids)
    _, batch_loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    batch_loss.backward()
    optimizer.step()
    return batch_loss.item()

def train():
    model.train()
    for it in range(max_iters):
        if it % eval_interval == 0:
            print(f"step {it}: loss {estimate_loss([batch]):.4f}")
        train_step(batch)

model = GPTLanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
batch = make_sentences([12, 7, 9, 4, 10])
kind, pad_id, eos_id, start_id, max_length = "causal", PAD, EOS, BOS, block_size

def forward(ids):
    return model(ids)[0]

def loss(ids):
    return model(*get_xy(ids))[1]

def generate(ids, count):
    return model.generate(ids, count)

def sample(ids):
    return model.generate(ids, 1, temperature=temperature)

evaluate = estimate_loss

if __name__ == "__main__":
    train()
    print(generate(batch[:1, :4], 6))

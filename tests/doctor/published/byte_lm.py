"""Assignment 1, problem 4 (training): a byte-level Transformer language model, everything from scratch.

No nn.Linear, no nn.Embedding, no torch.optim.AdamW, no F.cross_entropy: see the handout.
"""
import math

import torch
import torch.nn as nn

torch.manual_seed(336)

# --- section 2: bytes --------------------------------------------------------------------------
PAD, EOS, BOS = 256, 257, 258
VOCAB_SIZE, CONTEXT_LENGTH = 259, 48
D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS, ROPE_THETA, DROPOUT = 32, 4, 88, 2, 10000.0, 0.1
MAX_LR, MIN_LR, WARMUP_ITERS, TOTAL_ITERS, MAX_GRAD_NORM = 3e-3, 3e-4, 6, 60, 1.0

SENTENCES = ["once upon a time there was a small fox.", "the fox liked apples.", "one day it rained and rained.",
             "the river grew wide!", "so the fox slept under the old bridge.", "the end."]

def pad_batch(texts):
    rows = [[BOS] + list(text.encode("utf-8")) + [EOS] for text in texts]
    width = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])

# --- section 3: the model ----------------------------------------------------------------------
class Linear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        std = math.sqrt(2.0 / (in_features + out_features))
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.trunc_normal_(self.weight, 0.0, std, -3 * std, 3 * std)
    def forward(self, x):
        return x @ self.weight.T

class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(nn.init.trunc_normal_(torch.empty(num_embeddings, embedding_dim), 0.0, 1.0, -3, 3))
    def forward(self, token_ids):
        return self.weight[token_ids]

class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
    def forward(self, x):
        inverse_rms = torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (x.float() * inverse_rms * self.weight).to(x.dtype)

class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(d_model, d_ff), Linear(d_ff, d_model), Linear(d_model, d_ff)
    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))

class RotaryPositionalEmbedding(nn.Module):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        inverse_frequency = theta ** (-torch.arange(0, d_k, 2).float() / d_k)
        angles = torch.arange(max_seq_len).float()[:, None] * inverse_frequency
        angles = angles.repeat_interleave(2, dim=-1)  # t0 t0 t1 t1 ...
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
    def forward(self, x, token_positions):
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        return x * self.cos[token_positions] + turned * self.sin[token_positions]

def softmax(x, dim):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)

def scaled_dot_product_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return softmax(scores.masked_fill(~mask, float("-inf")), dim=-1) @ v

class CausalMultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, max_seq_len, theta):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.q_proj, self.k_proj = Linear(d_model, d_model), Linear(d_model, d_model)
        self.v_proj, self.output_proj = Linear(d_model, d_model), Linear(d_model, d_model)
        self.rope = RotaryPositionalEmbedding(theta, self.d_k, max_seq_len)
    def forward(self, x, positions, cache=None):
        batch_size, length, _ = x.shape
        q, k, v = (proj(x).view(batch_size, length, self.num_heads, self.d_k).transpose(1, 2)
                   for proj in (self.q_proj, self.k_proj, self.v_proj))
        q = self.rope(q, positions)
        k = self.rope(k, positions)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache["k"], k), dim=2), torch.cat((cache["v"], v), dim=2)
            cache["k"], cache["v"] = k, v
        mask = torch.arange(k.shape[2])[None, :] <= positions[:, None]
        out = scaled_dot_product_attention(q, k, v, mask)
        return self.output_proj(out.transpose(1, 2).reshape(batch_size, length, -1))

class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, max_seq_len, theta, dropout):
        super().__init__()
        self.ln1, self.attn = RMSNorm(d_model), CausalMultiHeadSelfAttention(d_model, num_heads, max_seq_len, theta)
        self.ln2, self.ffn = RMSNorm(d_model), SwiGLU(d_model, d_ff)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x, positions, cache=None):
        x = x + self.dropout(self.attn(self.ln1(x), positions, cache))
        return x + self.dropout(self.ffn(self.ln2(x)))

class TransformerLM(nn.Module):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta, dropout):
        super().__init__()
        self.token_embeddings = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, context_length, rope_theta, dropout)
                                     for _ in range(num_layers)])
        self.ln_final, self.lm_head = RMSNorm(d_model), Linear(d_model, vocab_size)
    def forward(self, token_ids, caches=None):
        start = caches[0]["k"].shape[2] if caches and caches[0] else 0
        positions = torch.arange(start, start + token_ids.shape[1])
        x = self.token_embeddings(token_ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, positions, caches[i] if caches else None)
        return self.lm_head(self.ln_final(x))

# --- section 4: loss, optimizer, schedule, clipping ----------------------------------------------
def cross_entropy(logits, targets):
    logits = logits - logits.amax(dim=-1, keepdim=True)
    return logits.exp().sum(dim=-1).log() - logits.gather(-1, targets[..., None]).squeeze(-1)

class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, g = self.state[p], p.grad
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                state["m"] = beta1 * state["m"] + (1 - beta1) * g
                state["v"] = beta2 * state["v"] + (1 - beta2) * g * g
                m_hat, v_hat = state["m"] / (1 - beta1 ** state["t"]), state["v"] / (1 - beta2 ** state["t"])
                p -= lr * group["weight_decay"] * p
                p -= lr * m_hat / (v_hat.sqrt() + group["eps"])

def get_lr_cosine_schedule(it, max_lr, min_lr, warmup_iters, total_iters):
    if it < warmup_iters:
        return max_lr * (it + 1) / warmup_iters
    progress = min(1.0, (it - warmup_iters) / (total_iters - warmup_iters))
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * progress))

def clip_gradients(parameters, max_norm, eps=1e-6):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(g.pow(2).sum().item() for g in grads))
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / (norm + eps))

model = TransformerLM(VOCAB_SIZE, CONTEXT_LENGTH, D_MODEL, NUM_LAYERS, NUM_HEADS, D_FF, ROPE_THETA, DROPOUT)
matrices = [m.weight for m in model.modules() if isinstance(m, Linear)]
others = [m.weight for m in model.modules() if isinstance(m, (Embedding, RMSNorm))]
optimizer = AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.0}], lr=MAX_LR)

def token_losses(ids):
    inputs, labels = ids[:, :-1], ids[:, 1:]
    return cross_entropy(model(inputs), labels)[labels != PAD]

def loss(ids):
    return token_losses(ids).mean()

def train_step(ids):
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    clip_gradients(model.parameters(), MAX_GRAD_NORM)
    optimizer.step()
    return value.item()

def in_eval_mode(function):
    @torch.no_grad()
    def wrapped(*args):
        was_training = model.training
        model.eval()
        result = function(*args)
        model.train(was_training)
        return result
    return wrapped

@in_eval_mode
def evaluate(batches):
    total, count = 0.0, 0
    for item in batches:
        nll = token_losses(item if torch.is_tensor(item) else item[0])  # a TensorDataset gives tuples
        total, count = total + nll.sum().item(), count + nll.numel()
    return total / count

# --- section 5: decoding -------------------------------------------------------------------------
@in_eval_mode
def next_logits(ids):
    return model(ids[:, -CONTEXT_LENGTH:])[:, -1]

def generate(ids, count):
    for _ in range(count):
        ids = torch.cat((ids, next_logits(ids).argmax(dim=-1, keepdim=True)), dim=1)
    return ids

def sample(ids):
    probabilities = softmax(next_logits(ids) / temperature, dim=-1)
    return torch.cat((ids, torch.multinomial(probabilities, 1)), dim=1)

@in_eval_mode
def cached(ids):
    caches = [{} for _ in model.layers]
    return torch.cat([model(ids[:, i:i + 1], caches) for i in range(ids.shape[1])], dim=1)

def schedule(it):
    return get_lr_cosine_schedule(it, MAX_LR, MIN_LR, WARMUP_ITERS, TOTAL_ITERS)

batch = pad_batch(SENTENCES)
kind, pad_id, eos_id, start_id, padding_side = "causal", PAD, EOS, BOS, "right"
max_length, steps, temperature = CONTEXT_LENGTH, TOTAL_ITERS, 0.8

if __name__ == "__main__":
    for it in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule(it)
        train_step(batch)
    print("loss per byte", evaluate([batch]), bytes(i for i in generate(batch[:1, :6], 20)[0].tolist() if i < 256))

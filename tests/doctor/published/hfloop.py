"""Shopping-receipt language model: GPT2Config + own attention + a home-made Trainer.  Padded on the LEFT."""
import math
import random
from dataclasses import dataclass
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, set_seed
from transformers.activations import ACT2FN
from transformers.pytorch_utils import Conv1D

CHARS = "0123456789.x abcdefghijklmnop\n"
PAD, BOS, EOS = len(CHARS), len(CHARS) + 1, len(CHARS) + 2

class ReceiptConfig(GPT2Config):
    model_type = "receipt_gpt2"

@dataclass
class LoopArguments:
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    per_device_train_batch_size: int = 2
    gradient_accumulation_steps: int = 3
    warmup_steps: int = 6
    max_steps: int = 40
    max_grad_norm: float = 1.0
    bf16: bool = False
    seed: int = 42

class ReceiptAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads = config.n_head
        self.head_dim = config.n_embd // config.n_head
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.attn_p = config.attn_pdrop
        self.resid_dropout = nn.Dropout(config.resid_pdrop)
    def forward(self, hidden_states, bias, layer_past=None):
        bsz, q_len, dim = hidden_states.shape
        query, key, value = (
            t.view(bsz, q_len, self.num_heads, self.head_dim).transpose(1, 2)
            for t in self.c_attn(hidden_states).split(dim, dim=2))
        if layer_past is not None:
            key = torch.cat([layer_past[0], key], dim=2)
            value = torch.cat([layer_past[1], value], dim=2)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.head_dim)
        probs = F.softmax(scores.float() + bias, dim=-1).to(value.dtype)
        probs = F.dropout(probs, p=self.attn_p, training=self.training)
        out = (probs @ value).transpose(1, 2).reshape(bsz, q_len, dim)
        return self.resid_dropout(self.c_proj(out)), (key, value)

class ReceiptMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(config.n_inner, config.n_embd), Conv1D(config.n_embd, config.n_inner)
        self.act, self.dropout = ACT2FN[config.activation_function], nn.Dropout(config.resid_pdrop)
    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))

class ReceiptBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn, self.mlp = ReceiptAttention(config), ReceiptMLP(config)
    def forward(self, x, bias, layer_past=None):
        a, present = self.attn(self.ln_1(x), bias, layer_past)
        x = x + a
        return x + self.mlp(self.ln_2(x)), present

class ReceiptLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte, self.wpe = nn.Embedding(config.vocab_size, config.n_embd), nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([ReceiptBlock(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(p, std=config.initializer_range / math.sqrt(2 * config.n_layer))
        self.lm_head.weight = self.wte.weight
    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding, Conv1D)):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if getattr(module, "bias", None) is not None:
            nn.init.zeros_(module.bias)
    def forward(self, input_ids, attention_mask=None, past=None, use_cache=False):
        q_len = input_ids.shape[1]
        if attention_mask is None:
            attention_mask = input_ids.ne(self.config.pad_token_id).long()
        k_len = attention_mask.shape[1]
        position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -q_len:]
        visible = torch.ones(q_len, k_len, dtype=torch.bool, device=input_ids.device).tril(k_len - q_len)
        visible = visible & attention_mask[:, None, None, :].bool()
        bias = torch.zeros(visible.shape, device=input_ids.device)
        bias = bias.masked_fill(~visible, torch.finfo(bias.dtype).min)
        x = self.drop(self.wte(input_ids) + self.wpe(position_ids))
        presents = []
        for block, layer_past in zip(self.h, past or [None] * len(self.h)):
            x, present = block(x, bias, layer_past)
            presents.append(present)
        logits = self.lm_head(self.ln_f(x))
        return (logits, presents) if use_cache else logits

def causal_lm_loss(logits, labels, num_items_in_batch):
    """As in HF: logits and labels come in at the same length, the shift happens here."""
    logits, labels = logits[:, :-1].float(), labels[:, 1:]
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    return total / num_items_in_batch

class Loop:
    def __init__(self, model, args):
        self.model, self.args = model, args
        no_decay = ("bias", "ln_")
        named = list(model.named_parameters())
        self.optimizer = torch.optim.AdamW([
            {"params": [p for n, p in named if not any(k in n for k in no_decay)], "weight_decay": args.weight_decay},
            {"params": [p for n, p in named if any(k in n for k in no_decay)], "weight_decay": 0.0},
        ], lr=args.learning_rate)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.lr_factor)
    def lr_factor(self, step):
        if step < self.args.warmup_steps:
            return (step + 1) / self.args.warmup_steps
        return max(0.0, (self.args.max_steps - step) / (self.args.max_steps - self.args.warmup_steps))
    def make_labels(self, ids):
        labels = ids.masked_fill(ids.eq(PAD), -100)
        labels[:, 1:] = labels[:, 1:].masked_fill(ids[:, :-1].eq(PAD), -100)  # nothing real stands before BOS
        return labels
    def num_items(self, ids):
        return int(self.make_labels(ids)[:, 1:].ne(-100).sum())
    def compute_loss(self, ids, num_items_in_batch=None):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.args.bf16):
            logits = self.model(ids)
        return causal_lm_loss(logits, self.make_labels(ids), num_items_in_batch or self.num_items(ids))
    def training_step(self, ids):
        self.model.train()
        chunks = ids.split(self.args.per_device_train_batch_size)
        num_items_in_batch = sum(self.num_items(c) for c in chunks)
        total = 0.0
        for chunk in chunks:
            loss = self.compute_loss(chunk, num_items_in_batch)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        return total
    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total, items = 0.0, 0
        for ids in loader:
            n = self.num_items(ids)
            total += self.compute_loss(ids).item() * n
            items += n
        return total / items
    def train(self, rows):
        size = self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps
        for step in range(self.args.max_steps):
            value = self.training_step(collate(random.sample(rows, size)))
        print(value, self.evaluate([batch]))

def make_receipt(rng):
    items = [f"{rng.randint(1, 9)}x {rng.choice('abcdef')}{rng.choice('ijkl')} {rng.randint(0, 9)}.5" for _ in range(rng.randint(1, 3))]
    return [BOS] + [CHARS.index(c) for c in "\n".join(items)] + [EOS]

def collate(rows):
    return torch.tensor([[PAD] * (max(map(len, rows)) - len(r)) + r for r in rows])

@torch.no_grad()
def generate(ids, count):
    model.eval()
    mask, past, feed = ids.ne(PAD).long(), None, ids
    for _ in range(count):
        logits, past = model(feed, attention_mask=mask, past=past, use_cache=True)
        feed = logits[:, -1].argmax(-1, keepdim=True)
        ids, mask = torch.cat([ids, feed], 1), torch.cat([mask, torch.ones_like(feed)], 1)
    return ids

@torch.no_grad()
def cached(ids):
    model.eval()
    mask, past, out = ids.ne(PAD).long(), None, []
    for i in range(ids.shape[1]):
        logits, past = model(ids[:, i:i + 1], attention_mask=mask[:, :i + 1], past=past, use_cache=True)
        out.append(logits)
    return torch.cat(out, 1)

args = LoopArguments()
set_seed(args.seed)
config = ReceiptConfig(
    vocab_size=len(CHARS) + 3, n_positions=48, n_embd=32, n_layer=3, n_head=4, n_inner=64,
    attn_pdrop=0.1, resid_pdrop=0.1, embd_pdrop=0.1, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD)
model = ReceiptLM(config)
loop = Loop(model, args)
rng = random.Random(args.seed)
rows = [make_receipt(rng) for _ in range(60)]

batch = collate(rows[:6])
kind, padding_side, tied = "causal", "left", True
pad_id, eos_id, start_id, max_length = PAD, EOS, BOS, config.n_positions
loss, train_step, evaluate, optimizer = loop.compute_loss, loop.training_step, loop.evaluate, loop.optimizer
steps = args.max_steps

def schedule(step):
    return args.learning_rate * loop.lr_factor(step)

if __name__ == "__main__":
    loop.train(rows[6:])
    print(generate(batch[:2, :12], 8).tolist())

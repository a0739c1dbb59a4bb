import math

import torch
import torch.nn.functional as F
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

PAD, BOS, EOS = 0, 1, 2
VOCAB, CONTEXT = 64, 64
MICRO_BATCH, LR, MAX_NORM, NUM_STEPS, NUM_WARMUP = 2, 2e-3, 1.0, 120, 12

torch.manual_seed(42)
config = GPT2Config(
    vocab_size=VOCAB, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,
    bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
)
model = GPT2LMHeadModel(config)

# ---------------------------------------------------------------- data
class ToyDataset(torch.utils.data.Dataset):
    """Palindromes between <bos> and <eos>."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(size):
            half = torch.randint(3, VOCAB, (int(torch.randint(2, 10, (1,), generator=generator)),), generator=generator)
            self.items.append(torch.cat([torch.tensor([BOS]), half, half.flip(0), torch.tensor([EOS])]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

def pad_rows(rows, side="right"):
    width = max(len(row) for row in rows)
    out = torch.full((len(rows), width), PAD)
    for i, row in enumerate(rows):
        if side == "right":
            out[i, : len(row)] = row
        else:
            out[i, width - len(row) :] = row
    return out

def prepare(input_ids):
    """What the collate function returns; also used on a batch that is a tensor already."""
    attention_mask = (input_ids != PAD).long()
    position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)
    labels = input_ids.masked_fill(attention_mask == 0, -100)
    return dict(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids), labels

def collate_fn(rows):
    return pad_rows(rows)

# ---------------------------------------------------------------- loss
def token_losses(input_ids):
    inputs, labels = prepare(input_ids)
    logits = model(**inputs, use_cache=False).logits
    shift_logits, shift_labels = logits[:, :-1], labels[:, 1:]
    nll = F.cross_entropy(shift_logits.transpose(1, 2), shift_labels, reduction="none", ignore_index=-100)
    return nll, shift_labels != -100

def forward(input_ids):
    return model(**prepare(input_ids)[0], use_cache=False).logits

def loss(input_ids):
    nll, mask = token_losses(input_ids)
    return nll.sum() / mask.sum()

# ---------------------------------------------------------------- training
no_decay = ("bias", "ln_", "norm", "wte", "wpe", "embed")
optimizer = torch.optim.AdamW(
    [
        {"params": [p for n, p in model.named_parameters() if not any(k in n for k in no_decay)], "weight_decay": 0.1},
        {"params": [p for n, p in model.named_parameters() if any(k in n for k in no_decay)], "weight_decay": 0.0},
    ],
    lr=LR,
)
lr_scheduler = get_cosine_schedule_with_warmup(optimizer, NUM_WARMUP, NUM_STEPS)

def train_step(input_ids):
    """One update of a large batch in micro-batches; the mean is over all its tokens."""
    model.train()
    optimizer.zero_grad()
    num_items = (input_ids[:, 1:] != PAD).sum()
    total = 0.0
    for micro in input_ids.split(MICRO_BATCH):
        nll, mask = token_losses(micro)
        micro_loss = nll.sum() / num_items
        micro_loss.backward()
        total += micro_loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    lr_scheduler.step()
    return total

@torch.no_grad()
def perplexity(batches):
    was_training = model.training
    model.eval()
    nll_sum, n_tokens = 0.0, 0
    for input_ids in batches:
        input_ids = input_ids[0] if isinstance(input_ids, (list, tuple)) else input_ids
        nll, mask = token_losses(input_ids)
        nll_sum += nll.sum().item()
        n_tokens += mask.sum().item()
    model.train(was_training)
    return math.exp(nll_sum / n_tokens)

# ---------------------------------------------------------------- inference
@torch.no_grad()
def greedy(prompts, count):
    """prompts: list of 1-d tensors of any lengths. Returns the new tokens only; <pad> after a row's <eos>."""
    was_training = model.training
    model.eval()
    inputs, _ = prepare(pad_rows(prompts, side="left"))
    attention_mask, position_ids = inputs["attention_mask"], inputs["position_ids"]
    step_ids, cache, new = inputs["input_ids"], DynamicCache(config=model.config), []
    finished = torch.zeros(len(prompts), dtype=torch.bool)
    for _ in range(count):
        out = model(step_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True)
        token = out.logits[:, -1].argmax(-1).masked_fill(finished, PAD)
        finished |= token == EOS
        new.append(token)
        step_ids = token[:, None]
        attention_mask = torch.cat([attention_mask, torch.ones_like(step_ids)], dim=1)
        position_ids = position_ids[:, -1:] + 1
    model.train(was_training)
    return torch.stack(new, dim=1)

def generate(ids, count):
    return torch.cat([ids, greedy([row[row != PAD] for row in ids], count)], dim=1)

@torch.no_grad()
def cached(ids):
    """Logits of a right-padded or unpadded batch, one token at a time."""
    was_training = model.training
    model.eval()
    cache, steps_out = DynamicCache(config=model.config), []
    inputs, _ = prepare(ids)
    for i in range(ids.size(1)):
        here = inputs["position_ids"][:, i : i + 1]
        out = model(ids[:, i : i + 1], attention_mask=inputs["attention_mask"][:, : i + 1], position_ids=here, past_key_values=cache, use_cache=True)
        steps_out.append(out.logits)
    model.train(was_training)
    return torch.cat(steps_out, dim=1)

# ---------------------------------------------------------------- run
train_set, val_set = ToyDataset(64, seed=0), ToyDataset(16, seed=1)
loader = torch.utils.data.DataLoader(train_set, batch_size=8, shuffle=True, collate_fn=collate_fn, generator=torch.Generator().manual_seed(0))
batch = collate_fn([train_set[i] for i in range(6)])
generates_padded = True
kind, pad_id, eos_id, start_id, max_length = "causal", PAD, EOS, BOS, CONTEXT
evaluate, steps = perplexity, NUM_STEPS
schedule = lambda step: LR * lr_scheduler.lr_lambdas[0](step)

if __name__ == "__main__":
    for epoch in range(4):
        losses = [train_step(input_ids) for input_ids in loader]
        print(epoch, sum(losses) / len(losses), perplexity([collate_fn(val_set.items)]), optimizer.param_groups[0]["lr"])
    print(greedy([train_set[0][:4], train_set[1][:6]], 5))

"""A small causal LM with the interfaces of transformers, and its own Trainer. Everything is padded on the left."""
import math
from dataclasses import dataclass
from typing import List, Optional, Tuple

import torch
from torch import nn

torch.manual_seed(42)

@dataclass
class TinyConfig:
    vocab_size: int = 28
    hidden_size: int = 32
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    max_position_embeddings: int = 48
    dropout: float = 0.1
    initializer_range: float = 0.05
    tie_word_embeddings: bool = True
    pad_token_id: int = 0
    bos_token_id: int = 1
    eos_token_id: int = 2

@dataclass
class CausalLMOutput:
    logits: torch.Tensor
    loss: Optional[torch.Tensor] = None
    past_key_values: Optional[List[Tuple[torch.Tensor, torch.Tensor]]] = None

def expand_mask(attention_mask, query_length, dtype):
    """(batch, keys) of ones and zeros -> additive bias (batch, 1, queries, keys) that is causal, too."""
    keys = attention_mask.shape[1]
    causal = torch.ones(keys, keys, dtype=torch.bool).tril()[-query_length:]
    visible = causal[None, None] & attention_mask[:, None, None, :].bool()
    visible = visible | torch.eye(keys, dtype=torch.bool)[-query_length:]  # no row without any key
    return torch.zeros(visible.shape, dtype=dtype).masked_fill(~visible, torch.finfo(dtype).min)

class TinyAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.c_attn = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.c_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.attn_dropout, self.resid_dropout = nn.Dropout(config.dropout), nn.Dropout(config.dropout)

    def forward(self, hidden_states, bias, past):
        batch_size, length, width = hidden_states.shape
        query, key, value = (t.view(batch_size, length, self.num_heads, self.head_dim).transpose(1, 2)
                             for t in self.c_attn(hidden_states).split(width, dim=2))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=-2), torch.cat([past[1], value], dim=-2)
        weights = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_dim) + bias
        weights = self.attn_dropout(nn.functional.softmax(weights, dim=-1))
        output = torch.matmul(weights, value).transpose(1, 2).reshape(batch_size, length, width)
        return self.resid_dropout(self.c_proj(output)), (key, value)

class TinyBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(config.hidden_size), TinyAttention(config), nn.LayerNorm(config.hidden_size)
        self.c_fc = nn.Linear(config.hidden_size, 4 * config.hidden_size)
        self.c_proj = nn.Linear(4 * config.hidden_size, config.hidden_size)
        self.act, self.dropout = nn.GELU(), nn.Dropout(config.dropout)

    def forward(self, hidden_states, bias, past=None):
        attn_output, present = self.attn(self.ln_1(hidden_states), bias, past)
        hidden_states = hidden_states + attn_output
        mlp_output = self.c_proj(self.act(self.c_fc(self.ln_2(hidden_states))))
        return hidden_states + self.dropout(mlp_output), present

class TinyForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        self.wpe = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList([TinyBlock(config) for _ in range(config.num_hidden_layers)])
        self.ln_f = nn.LayerNorm(config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def post_init(self):
        std = self.config.initializer_range
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):  # scaled by depth, as in GPT-2
                nn.init.normal_(parameter, mean=0.0, std=std / math.sqrt(2 * self.config.num_hidden_layers))
            elif parameter.dim() > 1:
                nn.init.normal_(parameter, mean=0.0, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.wte.weight

    def prepare_position_ids(self, attention_mask, past_length=0):
        return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past_length:]

    def forward(self, input_ids, attention_mask, position_ids=None, labels=None, past_key_values=None):
        past_length = 0 if past_key_values is None else past_key_values[0][0].shape[-2]
        if position_ids is None:
            position_ids = self.prepare_position_ids(attention_mask, past_length)
        hidden_states = self.drop(self.wte(input_ids) + self.wpe(position_ids))
        bias, presents = expand_mask(attention_mask, input_ids.shape[1], hidden_states.dtype), []
        for i, block in enumerate(self.h):
            hidden_states, present = block(hidden_states, bias, None if past_key_values is None else past_key_values[i])
            presents.append(present)
        logits, loss = self.lm_head(self.ln_f(hidden_states)), None
        if labels is not None:
            shift_logits, shift_labels = logits[:, :-1, :], labels[:, 1:]
            loss = nn.functional.cross_entropy(shift_logits.flatten(0, 1), shift_labels.flatten(), ignore_index=-100)
        return CausalLMOutput(logits, loss, presents)

    @torch.no_grad()
    def generate(self, input_ids, attention_mask, max_new_tokens):
        training, past, step_input = self.training, None, input_ids
        self.eval()
        for _ in range(max_new_tokens):
            position_ids = self.prepare_position_ids(attention_mask)[:, -step_input.shape[1]:]
            outputs = self(step_input, attention_mask, position_ids, past_key_values=past)
            past, step_input = outputs.past_key_values, outputs.logits[:, -1].argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, step_input], dim=-1)
            attention_mask = torch.cat([attention_mask, torch.ones_like(step_input)], dim=-1)
        self.train(training)
        return input_ids

def collate(ids):
    """Inputs of the model; padding and the start token (nothing stands before it) are no labels."""
    mask = ids.ne(config.pad_token_id)
    labels = ids.masked_fill(~mask | ids.eq(config.bos_token_id), -100)
    return {"input_ids": ids, "attention_mask": mask.long(), "labels": labels}

class Trainer:
    def __init__(self, model, num_epochs=5, steps_per_epoch=8, learning_rate=3e-3, warmup_steps=4, max_grad_norm=1.0):
        self.model, self.max_grad_norm, self.warmup_steps = model, max_grad_norm, warmup_steps
        self.num_epochs, self.learning_rate = num_epochs, learning_rate
        self.max_steps = num_epochs * steps_per_epoch
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.lr_lambda)

    def lr_lambda(self, step):
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        return max(0.0, (self.max_steps - step) / (self.max_steps - self.warmup_steps))

    def compute_loss(self, inputs):
        return self.model(**inputs).loss

    def training_step(self, inputs):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.compute_loss(inputs)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.lr_scheduler.step()
        return loss.detach()

    @torch.no_grad()
    def evaluation_loop(self, dataloader):
        training, losses, weights = self.model.training, [], []
        self.model.eval()
        for inputs in dataloader:
            losses.append(self.compute_loss(inputs))
            weights.append((inputs["labels"][:, 1:] != -100).sum())
        self.model.train(training)
        losses, weights = torch.stack(losses), torch.stack(weights).float()
        return {"eval_loss": ((losses * weights).sum() / weights.sum()).item()}

def tokenize(lengths, multiple=8):
    longest = math.ceil((max(lengths) + 2) / multiple) * multiple
    ids = torch.full((len(lengths), longest), config.pad_token_id)
    for row, n in enumerate(lengths):
        words = torch.randint(3, config.vocab_size, (n,)).sort().values
        ids[row, -(n + 2):] = torch.cat([torch.tensor([config.bos_token_id]), words, torch.tensor([config.eos_token_id])])
    return ids

config = TinyConfig()
model = TinyForCausalLM(config)
trainer = Trainer(model)
optimizer, steps, batch = trainer.optimizer, trainer.max_steps, tokenize([12, 5, 8, 3, 10, 7])
kind, padding_side, tied = "causal", "left", True
pad_id, eos_id, start_id, max_length = config.pad_token_id, config.eos_token_id, config.bos_token_id, config.max_position_embeddings

def forward(ids):
    return model(ids, ids.ne(pad_id).long()).logits

def loss(ids):
    return trainer.compute_loss(collate(ids))

def train_step(ids):
    return trainer.training_step(collate(ids))

def evaluate(batches):
    return trainer.evaluation_loop([collate(ids) for ids in batches])["eval_loss"]

def generate(ids, count):
    return model.generate(ids, ids.ne(pad_id).long(), count)

@torch.no_grad()
def cached(ids):
    training, past, rows = model.training, None, []
    model.eval()
    for end in range(1, ids.shape[1] + 1):
        outputs = model(ids[:, end - 1:end], ids[:, :end].ne(pad_id).long(), past_key_values=past)
        past = outputs.past_key_values
        rows.append(outputs.logits)
    model.train(training)
    return torch.cat(rows, dim=1)

def schedule(step):
    return trainer.learning_rate * trainer.lr_lambda(step)

if __name__ == "__main__":
    for _ in range(steps):
        train_step(batch)
    print(evaluate([batch]), generate(batch[:, :-3], 3)[0].tolist())

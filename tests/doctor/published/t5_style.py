# Mini T5: reverses a sequence. Names follow modeling_t5.py so that weights could be mapped later.
import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

@dataclass
class T5Config:
    vocab_size: int = 48
    d_model: int = 32
    d_kv: int = 8
    num_heads: int = 4
    d_ff: int = 64
    num_layers: int = 2
    num_buckets: int = 16
    max_distance: int = 40
    dropout_rate: float = 0.1
    pad_token_id: int = 0
    decoder_start_token_id: int = 1

@dataclass
class Seq2SeqLMOutput:
    loss: Optional[torch.Tensor] = None
    logits: Optional[torch.Tensor] = None
    past_key_values: Optional[list] = None

class T5LayerNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps
    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))

class T5Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_heads, self.d_kv, self.p = config.num_heads, config.d_kv, config.dropout_rate
        inner, d = config.num_heads * config.d_kv, config.d_model
        self.q, self.k, self.v = (nn.Linear(d, inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, d, bias=False)
        nn.init.normal_(self.q.weight, std=(d * config.d_kv) ** -0.5)  # takes the place of 1/sqrt(d_kv) in the scores
        for linear in (self.k, self.v, self.o):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    def split(self, x):
        return x.view(x.size(0), x.size(1), self.n_heads, self.d_kv).transpose(1, 2)
    def forward(self, hidden, bias, key_value_states=None, past=None):
        source = hidden if key_value_states is None else key_value_states
        query, key, value = self.split(self.q(hidden)), self.split(self.k(source)), self.split(self.v(source))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        scores = query @ key.transpose(2, 3)
        weights = (scores + bias).softmax(dim=-1)
        weights = F.dropout(weights, p=self.p, training=self.training)
        context = (weights @ value).transpose(1, 2).reshape(hidden.size(0), hidden.size(1), -1)
        return self.o(context), (key, value)

class T5Block(nn.Module):
    def __init__(self, config, is_decoder):
        super().__init__()
        d = config.d_model
        norm = lambda: T5LayerNorm(d)
        self.SelfAttention, self.attention_norm = T5Attention(config), norm()
        self.EncDecAttention, self.cross_norm = (T5Attention(config), norm()) if is_decoder else (None, None)
        self.wi_0, self.wi_1 = nn.Linear(d, config.d_ff, bias=False), nn.Linear(d, config.d_ff, bias=False)
        self.wo, self.ff_norm, self.dropout = nn.Linear(config.d_ff, d, bias=False), norm(), nn.Dropout(config.dropout_rate)
        for linear in (self.wi_0, self.wi_1, self.wo):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    def forward(self, hidden, bias, encoder_hidden=None, encoder_bias=None, past=None):
        attended, present = self.SelfAttention(self.attention_norm(hidden), bias, past=past)
        hidden = hidden + self.dropout(attended)
        if self.EncDecAttention is not None:
            crossed, _ = self.EncDecAttention(self.cross_norm(hidden), encoder_bias, key_value_states=encoder_hidden)
            hidden = hidden + self.dropout(crossed)
        normed = self.ff_norm(hidden)
        hidden = hidden + self.dropout(self.wo(self.dropout(F.gelu(self.wi_0(normed), approximate="tanh") * self.wi_1(normed))))
        return hidden, present

class T5Stack(nn.Module):
    def __init__(self, config, shared, is_decoder):
        super().__init__()
        self.config, self.embed_tokens, self.is_decoder = config, shared, is_decoder
        self.relative_attention_bias = nn.Embedding(config.num_buckets, config.num_heads)
        nn.init.normal_(self.relative_attention_bias.weight, std=config.d_model**-0.5)
        self.block = nn.ModuleList(T5Block(config, is_decoder) for _ in range(config.num_layers))
        self.final_layer_norm = T5LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout_rate)
    def bucket(self, relative_position):
        buckets, max_distance = self.config.num_buckets, self.config.max_distance
        result = torch.zeros_like(relative_position)
        if not self.is_decoder:
            buckets //= 2
            result = (relative_position > 0).long() * buckets
            distance = relative_position.abs()
        else:
            distance = (-relative_position).clamp(min=0)
        exact = buckets // 2
        large = exact + (torch.log(distance.clamp(min=1) / exact) / math.log(max_distance / exact) * (buckets - exact)).long()
        return result + torch.where(distance < exact, distance, large.clamp(max=buckets - 1))
    def compute_bias(self, offset, key_length):
        context = torch.arange(offset, key_length)[:, None]
        memory = torch.arange(key_length)[None, :]
        return self.relative_attention_bias(self.bucket(memory - context)).permute(2, 0, 1)[None]
    def forward(self, ids, attention_mask=None, encoder_hidden=None, encoder_mask=None, past=None):
        offset = 0 if past is None else past[0][0].size(2)
        length = offset + ids.size(1)
        mask = torch.zeros(1, 1, ids.size(1), length)
        if attention_mask is not None:
            mask = mask.masked_fill(~attention_mask[:, None, None, :], -1e9)
        if self.is_decoder:
            mask = mask + torch.full((ids.size(1), length), -1e9).triu(1 + offset)
        encoder_bias = None if encoder_hidden is None else torch.zeros(encoder_mask.shape).masked_fill(~encoder_mask, -1e9)[:, None, None, :]
        position_bias = self.compute_bias(offset, length)  # one table, shared by the layers
        hidden, presents = self.dropout(self.embed_tokens(ids)), []
        for i, block in enumerate(self.block):
            hidden, present = block(hidden, position_bias + mask, encoder_hidden, encoder_bias, past[i] if past else None)
            presents.append(present)
        return self.dropout(self.final_layer_norm(hidden)), presents

class T5ForConditionalGeneration(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.shared.weight, std=0.3)
        self.encoder, self.decoder = T5Stack(config, self.shared, False), T5Stack(config, self.shared, True)
    def _shift_right(self, labels):
        shifted = labels.new_full(labels.shape, self.config.decoder_start_token_id)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == -100, self.config.pad_token_id)
    def forward(self, input_ids, decoder_input_ids=None, labels=None, past_key_values=None):
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = self._shift_right(labels)
        source_mask = input_ids.ne(self.config.pad_token_id)
        encoded, _ = self.encoder(input_ids, attention_mask=source_mask)
        output, presents = self.decoder(decoder_input_ids, encoder_hidden=encoded, encoder_mask=source_mask, past=past_key_values)
        output = output * self.config.d_model**-0.5  # tied: rescale before the vocabulary
        logits = F.linear(output, self.shared.weight)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return Seq2SeqLMOutput(loss, logits, presents)

def forward(source, target):
    return model(source, decoder_input_ids=target).logits

def loss(source, target):
    labels = target[:, 1:]
    return model(source, labels=labels.masked_fill(labels == pad_id, -100)).loss

def schedule(step):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    return PEAK * math.sqrt(WARMUP / (step + 1))

def train_step(source, target):
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = schedule(state["step"])
    optimizer.zero_grad()
    value = loss(source, target)
    value.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    state["step"] += 1
    return value.item()

@torch.no_grad()
def evaluate(batches):
    was_training, total, tokens = model.training, 0.0, 0
    model.eval()
    for source, target in batches:
        nll = F.cross_entropy(forward(source, target[:, :-1]).transpose(1, 2), target[:, 1:], ignore_index=pad_id, reduction="sum")
        total, tokens = total + nll.item(), tokens + int(target[:, 1:].ne(pad_id).sum())
    model.train(was_training)
    return total / tokens

@torch.no_grad()
def generate(source, *rest):  # generate(source, count) or generate(source, decoder prefix, count)
    was_training, ids = model.training, rest[0] if len(rest) == 2 else source.new_full((len(source), 1), start_id)
    model.eval()
    for _ in range(rest[-1]):
        ids = torch.cat([ids, forward(source, ids)[:, -1:].argmax(-1)], dim=1)
    model.train(was_training)
    return ids

@torch.no_grad()
def cached(source, target):
    was_training, past, logits = model.training, None, []
    model.eval()
    for i in range(target.size(1)):
        output = model(source, decoder_input_ids=target[:, i : i + 1], past_key_values=past)
        past, logits = output.past_key_values, logits + [output.logits]
    model.train(was_training)
    return torch.cat(logits, dim=1)

torch.manual_seed(11)
config = T5Config()
kind, pad_id, start_id, eos_id, max_length = "translator", config.pad_token_id, config.decoder_start_token_id, 2, 40
pad = lambda rows: nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
pairs = [torch.randint(3, config.vocab_size, (int(n),)) for n in torch.randint(4, 13, (48,))]
end, start = torch.tensor([eos_id]), torch.tensor([start_id])
to_batch = lambda rows: (pad([torch.cat([r, end]) for r in rows]), pad([torch.cat([start, r.flip(0), end]) for r in rows]))
batch = to_batch(pairs[:5])
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
PEAK, WARMUP, steps, state = 3e-3, 30, 300, {"step": 0}

if __name__ == "__main__":
    for epoch in range(5):
        print(epoch, [round(train_step(*to_batch(pairs[i : i + 8])), 3) for i in range(0, 40, 8)], evaluate([to_batch(pairs[40:])]))

"""Toy translation in the manner of fairseq: time-first tensors, left-padded source, incremental state."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
BOS, PAD, EOS, VOCAB = 0, 1, 2, 24
EMBED, FFN, HEADS, LAYERS, DROPOUT, EPSILON, MAX_POSITIONS = 32, 64, 4, 2, 0.1, 0.1, 48
PEAK_LR, WARMUP, CLIP = 3e-3, 10, 1.0

def make_positions(tokens):
    """Real tokens count from PAD + 1, padding symbols stay at PAD."""
    mask = tokens.ne(PAD).long()
    return torch.cumsum(mask, dim=1) * mask + PAD

def Linear(a, b, bias=True):
    m = nn.Linear(a, b, bias)
    nn.init.xavier_uniform_(m.weight)
    if bias:
        nn.init.constant_(m.bias, 0.0)
    return m

def Embedding(num, dim):
    m = nn.Embedding(num, dim, padding_idx=PAD)
    nn.init.normal_(m.weight, mean=0, std=dim ** -0.5)
    nn.init.constant_(m.weight[PAD], 0)
    return m

class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, dim, size):
        super().__init__()
        half = dim // 2
        freq = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
        angle = torch.arange(size).float().unsqueeze(1) * freq.unsqueeze(0)
        table = torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)
        table[PAD, :] = 0
        self.register_buffer("weights", table)

    def forward(self, tokens):
        return self.weights[make_positions(tokens)]

class MultiheadAttention(nn.Module):
    """Input is time x batch x channel."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.scaling = self.head_dim ** -0.5
        self.q_proj, self.k_proj = Linear(embed_dim, embed_dim), Linear(embed_dim, embed_dim)
        self.v_proj, self.out_proj = Linear(embed_dim, embed_dim), Linear(embed_dim, embed_dim)

    def forward(self, query, key, key_padding_mask=None, attn_mask=None, incremental_state=None, static_kv=False):
        tgt_len, bsz, embed_dim = query.size()
        saved = incremental_state.get(self) if incremental_state is not None else None
        q = self.q_proj(query) * self.scaling
        q = q.view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        if saved is not None and static_kv:
            k, v = saved["prev_key"], saved["prev_value"]
        else:
            k = self.k_proj(key).view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
            v = self.v_proj(key).view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
            if saved is not None:
                k = torch.cat([saved["prev_key"], k], dim=1)
                v = torch.cat([saved["prev_value"], v], dim=1)
                key_padding_mask = torch.cat([saved["prev_key_padding_mask"], key_padding_mask], dim=1)
        if incremental_state is not None:
            incremental_state[self] = {"prev_key": k, "prev_value": v, "prev_key_padding_mask": key_padding_mask}
        scores = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            scores = scores + attn_mask.unsqueeze(0)
        if key_padding_mask is not None:
            per_head = key_padding_mask.repeat_interleave(self.num_heads, dim=0)
            scores = scores.masked_fill(per_head.unsqueeze(1), float("-inf"))
        probs = F.dropout(F.softmax(scores, dim=-1), DROPOUT, self.training)
        attn = torch.bmm(probs, v).transpose(0, 1).contiguous().view(tgt_len, bsz, embed_dim)
        return self.out_proj(attn)

class Layer(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = MultiheadAttention(EMBED, HEADS), nn.LayerNorm(EMBED)
        self.encoder_attn = MultiheadAttention(EMBED, HEADS) if decoder else None
        self.encoder_attn_layer_norm = nn.LayerNorm(EMBED) if decoder else None
        self.fc1, self.fc2, self.final_layer_norm = Linear(EMBED, FFN), Linear(FFN, EMBED), nn.LayerNorm(EMBED)

    def drop(self, x):
        return F.dropout(x, DROPOUT, self.training)

    def forward(self, x, padding_mask, attn_mask=None, encoder_out=None, encoder_padding_mask=None, state=None):
        residual = x
        x = self.self_attn_layer_norm(x)
        x = self.self_attn(x, x, padding_mask, attn_mask, state)
        x = residual + self.drop(x)
        if self.encoder_attn is not None:
            residual = x
            x = self.encoder_attn_layer_norm(x)
            x = self.encoder_attn(x, encoder_out, encoder_padding_mask, None, state, static_kv=True)
            x = residual + self.drop(x)
        residual = x
        x = self.final_layer_norm(x)
        x = self.fc2(self.drop(F.relu(self.fc1(x))))
        return residual + self.drop(x)

class Stack(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.embed_tokens, self.embed_positions = Embedding(VOCAB, EMBED), SinusoidalPositionalEmbedding(EMBED, MAX_POSITIONS)
        self.embed_scale = math.sqrt(EMBED)
        self.layers = nn.ModuleList([Layer(decoder) for _ in range(LAYERS)])
        self.layer_norm = nn.LayerNorm(EMBED)
        self.decoder = decoder
        self.output_projection = nn.Linear(EMBED, VOCAB, bias=False) if decoder else None
        if decoder:
            nn.init.normal_(self.output_projection.weight, mean=0, std=EMBED ** -0.5)

    def forward(self, tokens, encoder_out=None, encoder_padding_mask=None, incremental_state=None):
        padding_mask = tokens.eq(PAD)
        x = self.embed_scale * self.embed_tokens(tokens) + self.embed_positions(tokens)
        x = F.dropout(x, DROPOUT, self.training).transpose(0, 1)  # B x T x C -> T x B x C
        future = None
        if self.decoder:
            if incremental_state is not None:
                x, padding_mask = x[-1:], padding_mask[:, -1:]
            else:
                future = torch.triu(x.new_full((x.size(0), x.size(0)), float("-inf")), 1)
        for layer in self.layers:
            x = layer(x, padding_mask, future, encoder_out, encoder_padding_mask, incremental_state)
        x = self.layer_norm(x)
        return self.output_projection(x.transpose(0, 1)) if self.decoder else (x, padding_mask)

class TransformerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Stack(False), Stack(True)

    def forward(self, src_tokens, prev_output_tokens):
        return self.decoder(prev_output_tokens, *self.encoder(src_tokens))

def label_smoothed_nll_loss(lprobs, target, epsilon):
    target = target.unsqueeze(-1)
    nll_loss = -lprobs.gather(dim=-1, index=target)
    smooth_loss = -lprobs.sum(dim=-1, keepdim=True)
    pad_mask = target.eq(PAD)
    nll_loss = nll_loss.masked_fill(pad_mask, 0.0).sum()
    smooth_loss = smooth_loss.masked_fill(pad_mask, 0.0).sum()
    eps_i = epsilon / (lprobs.size(-1) - 1)
    return (1.0 - epsilon - eps_i) * nll_loss + eps_i * smooth_loss, nll_loss

def criterion(source, target):
    """Sums over the tokens, with their number."""
    prev_output_tokens, labels = target[:, :-1], target[:, 1:]
    lprobs = F.log_softmax(model(source, prev_output_tokens), dim=-1)
    total, nll = label_smoothed_nll_loss(lprobs, labels, EPSILON)
    ntokens = labels.ne(PAD).sum()
    return total, nll, ntokens

def loss(source, target):
    total, _, ntokens = criterion(source, target)
    return total / ntokens

def schedule(step):
    """inverse_sqrt: linear warmup to PEAK_LR, then decay with the square root of the update number."""
    step = step + 1
    return PEAK_LR * min(step / WARMUP, (WARMUP / step) ** 0.5)

num_updates = 0

def train_step(source, target):
    global num_updates
    model.train()
    optimizer.zero_grad()
    total, _, ntokens = criterion(source, target)
    total.backward()
    for p in model.parameters():
        p.grad.div_(ntokens)
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.param_groups[0]["lr"] = schedule(num_updates)
    optimizer.step()
    num_updates += 1
    return total.item() / ntokens.item()

@torch.no_grad()
def evaluate(batches):
    training, nll_sum, count = model.training, 0.0, 0
    model.eval()
    for source, target in batches:
        _, nll, ntokens = criterion(source, target)
        nll_sum, count = nll_sum + nll.item(), count + ntokens.item()
    model.train(training)
    return nll_sum / count

@torch.no_grad()
def cached(source, prev_output_tokens):
    training = model.training
    model.eval()
    encoder_out, state, rows = model.encoder(source), {}, []
    for end in range(1, prev_output_tokens.size(1) + 1):
        rows.append(model.decoder(prev_output_tokens[:, :end], *encoder_out, incremental_state=state))
    model.train(training)
    return torch.cat(rows, dim=1)

@torch.no_grad()
def generate(source, prefix, count):
    training = model.training
    model.eval()
    encoder_out, state, tokens, wanted = model.encoder(source), {}, prefix, prefix.size(1) + count
    for end in range(1, wanted):
        logits = model.decoder(tokens[:, :end], *encoder_out, incremental_state=state)
        if end >= prefix.size(1):
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    model.train(training)
    return tokens

def collate(lengths):
    source, target = torch.full((len(lengths), max(lengths) + 1), PAD), torch.full((len(lengths), max(lengths) + 2), PAD)
    for row, n in enumerate(lengths):
        words = torch.randint(3, VOCAB, (n,))
        source[row, -(n + 1):] = torch.cat([words, torch.tensor([EOS])])
        target[row, :n + 2] = torch.cat([torch.tensor([BOS]), words.flip(0), torch.tensor([EOS])])
    return source, target

model = TransformerModel()
optimizer = torch.optim.Adam(model.parameters(), lr=PEAK_LR, betas=(0.9, 0.98))
batch = collate([9, 5, 7, 3, 8, 6])
kind, pad_id, eos_id, start_id, max_length, padding_side, steps = "translator", PAD, EOS, BOS, MAX_POSITIONS - 2, "left", 60
forward = model

if __name__ == "__main__":
    for update in range(steps):
        train_step(*batch)
    print(evaluate([batch]))

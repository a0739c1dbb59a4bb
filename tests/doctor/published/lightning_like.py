"""Causal LM on arithmetic progressions. LightningModule layout, but the trainer is 40 lines of our own."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD, BOS, EOS = 0, 1, 2
VOCAB_SIZE, MAX_LEN = 40, 32


def make_text(generator):
    first, stride, length = (int(torch.randint(lo, hi, (1,), generator=generator)) for lo, hi in ((0, 37), (1, 6), (4, 19)))
    return torch.tensor([BOS] + [3 + (first + i * stride) % 37 for i in range(length)] + [EOS])


def collate(texts):
    return pad_sequence(texts, batch_first=True, padding_value=PAD)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):  # (batch, token, feature)
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class LitCausalLM(nn.Module):
    def __init__(self, d_model=32, nhead=4, num_layers=3, dim_feedforward=64, dropout=0.1, **hparams):
        super().__init__()
        self.hparams = dict(lr=3e-3, weight_decay=0.05, warmup_steps=20, max_steps=200, label_smoothing=0.0, precision="32") | hparams
        self.d_model = d_model
        self.embed = nn.Embedding(VOCAB_SIZE, d_model, padding_idx=PAD)
        self.positions = PositionalEncoding(d_model, dropout)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward, dropout, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.head = nn.Linear(d_model, VOCAB_SIZE)
        self.init_weights()

    def init_weights(self):
        # TransformerEncoder deep-copies its layer: give every copy its own draw
        for p in self.encoder.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embed.weight, std=self.d_model**-0.5)
        nn.init.zeros_(self.embed.weight[PAD].detach())
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.hparams["precision"] == "bf16-mixed"):
            mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
            padding = torch.zeros(ids.shape).masked_fill(ids == PAD, float("-inf"))
            x = self.positions(self.embed(ids) * math.sqrt(self.d_model))
            x = self.encoder(x, mask=mask, src_key_padding_mask=padding, is_causal=True)
            return self.head(x).float()

    def training_step(self, batch):
        (ids,) = batch
        logits = self(ids[:, :-1])
        return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=PAD, label_smoothing=self.hparams["label_smoothing"])

    def validation_step(self, batch):
        (ids,) = batch
        target = ids[:, 1:]
        nll = F.cross_entropy(self(ids[:, :-1]).transpose(1, 2), target, ignore_index=PAD, reduction="sum")
        return nll.item(), int((target != PAD).sum())

    def lr_factor(self, step):
        warmup, total = self.hparams["warmup_steps"], self.hparams["max_steps"]
        if step < warmup:
            return (step + 1) / warmup
        progress = (step - warmup) / (total - warmup)
        return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))

    def configure_optimizers(self):
        decay = [p for n, p in self.named_parameters() if p.dim() > 1 and "embed" not in n]
        no_decay = [p for n, p in self.named_parameters() if p.dim() < 2 or "embed" in n]
        groups = [{"params": decay, "weight_decay": self.hparams["weight_decay"]}, {"params": no_decay, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.hparams["lr"], betas=(0.9, 0.98))
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, self.lr_factor)


class Trainer:
    def __init__(self, module, gradient_clip_val=0.5):
        self.module, self.clip = module, gradient_clip_val
        self.optimizer, self.scheduler = module.configure_optimizers()
        module.train()

    def fit_batch(self, batch):
        self.optimizer.zero_grad()
        loss = self.module.training_step(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, batches):
        was_training = self.module.training
        self.module.eval()
        outputs = [self.module.validation_step(b if isinstance(b, (list, tuple)) else (b,)) for b in batches]
        self.module.train(was_training)
        return sum(nll for nll, _ in outputs) / sum(count for _, count in outputs)

    def fit(self, train_batches, val_batches, epochs):
        for epoch in range(epochs):
            losses = [self.fit_batch(batch) for batch in train_batches]
            print(f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {self.validate(val_batches):.3f}")


@torch.no_grad()
def next_logits(ids):
    was_training = model.training
    model.eval()
    logits = model(ids)[:, -1]
    model.train(was_training)
    return logits


def generate(ids, count):  # prompts of one length
    for _ in range(count):
        ids = torch.cat([ids, next_logits(ids).argmax(-1, keepdim=True)], dim=1)
    return ids


def sample(ids):
    return torch.multinomial((next_logits(ids) / temperature).softmax(-1), 1)


torch.manual_seed(7)
texts = [make_text(torch.Generator().manual_seed(i)) for i in range(120)]
model = LitCausalLM()
trainer = Trainer(model)
batch = collate(texts[:6])
kind, pad_id, eos_id, start_id, max_length, temperature = "causal", PAD, EOS, BOS, MAX_LEN, 0.7
loss = lambda ids: model.training_step((ids,))
optimizer = trainer.optimizer
train_step = lambda ids: trainer.fit_batch((ids,))
evaluate = trainer.validate
schedule = lambda step: model.hparams["lr"] * model.lr_factor(step)
steps = model.hparams["max_steps"]

if __name__ == "__main__":
    trainer.fit([(collate(texts[i : i + 8]),) for i in range(0, 96, 8)], [(collate(texts[96:]),)], epochs=4)
    print(generate(batch[:2, :5], 6))

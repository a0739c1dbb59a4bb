r"""Pre-train a very small BERT on question/answer pairs.

[CLS] question [SEP] answer [SEP] [PAD] ...; segments are found inside the model from the first [SEP].
Every step masks other places: the generator of a step is seeded with the number of the step.
"""
import torch
from torch import nn, optim
from torch.nn import functional as F

PAD, CLS, SEP, MASK = range(4)
WORDS = ("who what where when is was the a king queen of france spain river city long old it he she lived in paris "
         "madrid seine ebro flows born died there year spring rome").split()
VOCAB = {w: i + 4 for i, w in enumerate(WORDS)}
SIZE = len(WORDS) + 4
PAIRS = [("who was the king of france", "he lived in paris"), ("where is the river", "it flows in the city of madrid"),
         ("what is it", "a river"), ("when was she born", "she was born in the spring of the year"),
         ("is the seine long", "it is"), ("where was the old queen of spain born", "she was born there in madrid"),
         ("who died in rome", "the old king died there"), ("what flows in paris", "the seine flows in the city"),
         ("is it old", "it was old"), ("when was the king born", "in the year of the queen")]


def to_ids(pairs):
    rows = []
    for question, answer in pairs:
        rows.append([CLS, *(VOCAB[w] for w in question.split()), SEP, *(VOCAB[w] for w in answer.split()), SEP])
    out = torch.full((len(rows), max(map(len, rows))), PAD)
    for i, row in enumerate(rows):
        out[i, :len(row)] = torch.tensor(row)
    return out


class Layer(nn.Module):
    def __init__(self, d, heads, p):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, heads, dropout=p, batch_first=True)
        self.LayerNorm_1, self.LayerNorm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.up, self.down, self.drop = nn.Linear(d, 3 * d), nn.Linear(3 * d, d), nn.Dropout(p)

    def forward(self, x, padding):
        y = self.LayerNorm_1(x)
        y, _ = self.attn(y, y, y, key_padding_mask=padding, need_weights=False)
        x = x + self.drop(y)
        y = self.down(F.gelu(self.up(self.LayerNorm_2(x))))
        return x + self.drop(y)


class TinyBert(nn.Module):
    def __init__(self, d=36, heads=3, depth=2, length=24, p=0.1):
        super().__init__()
        self.word = nn.Embedding(SIZE, d, padding_idx=PAD)
        self.segment = nn.Embedding(2, d)
        self.position = nn.Parameter(torch.zeros(1, length, d))
        self.layers = nn.ModuleList([Layer(d, heads, p) for _ in range(depth)])
        self.LayerNorm, self.drop = nn.LayerNorm(d), nn.Dropout(p)
        self.head = nn.Linear(d, SIZE)
        self.apply(self.start)
        nn.init.normal_(self.position, std=0.05)

    @staticmethod
    def start(module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.05)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.MultiheadAttention):
            nn.init.normal_(module.in_proj_weight, std=0.05)

    def forward(self, ids):
        separators = (ids == SEP).long()
        segment = (separators.cumsum(1) - separators).clamp(max=1)  # a [SEP] still belongs to the part it ends
        x = self.word(ids) + self.segment(segment) + self.position[:, :ids.size(1)]
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x, ids == PAD)
        return self.head(self.LayerNorm(x))


def corrupt(ids, generator):
    """15 % of the words are to be guessed: of these 80 % become [MASK], 10 % another word, 10 % stay."""
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & (ids > MASK)
    labels = ids.masked_fill(~chosen, -100)
    dice = torch.rand(ids.shape, generator=generator)
    noise = torch.randint(MASK + 1, SIZE, ids.shape, generator=generator)
    inputs = ids.masked_fill(chosen & (dice < 0.8), MASK)
    inputs = torch.where(chosen & (dice >= 0.8) & (dice < 0.9), noise, inputs)
    return inputs, labels


def guess(ids, seed):
    """Sum of the losses over the places to guess, and their number."""
    inputs, labels = corrupt(ids, torch.Generator().manual_seed(seed))
    summed = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), reduction="sum")
    return summed, (labels != -100).sum()


def loss(ids, seed=0):
    summed, number = guess(ids, seed)
    return summed / number.clamp(min=1)


torch.manual_seed(11)
model = TinyBert()

no_decay = ["bias", "LayerNorm"]
named = list(model.named_parameters())
groups = [
    {"params": [p for n, p in named if not any(k in n for k in no_decay)], "weight_decay": 0.05},
    {"params": [p for n, p in named if any(k in n for k in no_decay)], "weight_decay": 0.0},
]
optimizer = optim.AdamW(groups, lr=2e-3)
steps_done = 0


def train_step(ids):
    global steps_done
    steps_done += 1
    model.train()
    value = loss(ids, seed=steps_done)
    optimizer.zero_grad()
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return value.item()


def evaluate(batches):
    """Mean loss per guessed word over all batches; always the same masks."""
    before = model.training
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for number, ids in enumerate(batches):
            summed, n = guess(ids, seed=1000 + number)
            total, count = total + summed.item(), count + n.item()
    model.train(before)
    return total / max(count, 1)


batch = (to_ids(PAIRS[:6]),)
kind, pad_id, eos_id, start_id, max_length = "encoder", PAD, SEP, CLS, 24
forward = model

if __name__ == "__main__":
    for epoch in range(40):
        for i in range(0, 8, 4):
            train_step(to_ids(PAIRS[i:i + 4]))
    print(evaluate([to_ids(PAIRS[:3]), to_ids(PAIRS[3:10])]))

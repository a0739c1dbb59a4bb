# A byte-level language model, everything in one class, matrices are matrices.
import math
import torch
from torch import nn
from torch.nn import functional as F

kEnd, kPad, kVocab = 256, 257, 258      # 256 bytes, end of text, filler behind the end
kDim, kHeads, kHeadDim, kHidden, kLayers = 32, 4, 8, 128, 2
kMaxLen, kTable = 48, 64                # longest text; rows of the tables (some slack)
kDrop, kTemperature = 0.1, 0.8
kSteps, kWarm, kStart, kPeak, kFloor = 100, 10, 1e-4, 3e-3, 3e-4


class ByteModel(nn.Module):
    def __init__(self):
        super().__init__()
        std, out = 0.5 / math.sqrt(kDim), 0.5 / math.sqrt(kDim * 2 * kLayers)
        self.m_table = nn.Parameter(torch.randn(kVocab, kDim) * 0.1)
        self.m_gain = nn.Parameter(torch.ones(2 * kLayers + 1, kDim))
        self.m_qkv = nn.Parameter(torch.randn(kLayers, kDim, 3 * kDim) * std)
        self.m_out = nn.Parameter(torch.randn(kLayers, kDim, kDim) * out)
        self.m_up = nn.Parameter(torch.randn(kLayers, kDim, kHidden) * std)
        self.m_up_bias = nn.Parameter(torch.zeros(kLayers, kHidden))
        self.m_down = nn.Parameter(torch.randn(kLayers, kHidden, kDim) * (out / 2))
        self.m_down_bias = nn.Parameter(torch.zeros(kLayers, kDim))
        # rotary tables: pair i = channels (2i, 2i+1), both turn by the same angle
        angle = torch.arange(kTable)[:, None] / 1000.0 ** (torch.arange(0, kHeadDim, 2) / kHeadDim)
        angle = angle.repeat_interleave(2, dim=1)                 # (kTable, kHeadDim)
        self.register_buffer("m_cos", angle.cos())
        self.register_buffer("m_sin", angle.sin())
        self.register_buffer("m_later", torch.ones(kTable, kTable).triu(1).bool())  # [query][key]

    def norm(self, x, which):
        size = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(size + 1e-6) * self.m_gain[which]

    def turn(self, x, first):                                     # x: (B, H, T, kHeadDim)
        last = first + x.size(2)
        swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        return x * self.m_cos[first:last] + swapped * self.m_sin[first:last]

    def attention(self, x, n, first, cache):
        B, T, _ = x.shape
        last = first + T
        qkv = torch.matmul(x, self.m_qkv[n]).view(B, T, 3, kHeads, kHeadDim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)            # each (B, H, T, kHeadDim)
        q, k = self.turn(q, first), self.turn(k, first)
        if cache is not None:
            cache[n, 0, :, :, first:last] = k
            cache[n, 1, :, :, first:last] = v
            k, v = cache[n, 0, :, :, :last], cache[n, 1, :, :, :last]
        score = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(kHeadDim)
        score = score.masked_fill(self.m_later[first:last, :last], float("-inf"))
        mixed = torch.matmul(score.softmax(dim=-1), v)            # (B, H, T, kHeadDim)
        mixed = mixed.transpose(1, 2).reshape(B, T, kDim)
        return F.dropout(torch.matmul(mixed, self.m_out[n]), kDrop, self.training)

    def mlp(self, x, n):
        h = F.gelu(torch.addmm(self.m_up_bias[n], x.reshape(-1, kDim), self.m_up[n]))
        h = torch.addmm(self.m_down_bias[n], h, self.m_down[n])
        return F.dropout(h.view_as(x), kDrop, self.training)

    def forward(self, ids, first=0, cache=None):
        x = F.dropout(self.m_table[ids], kDrop, self.training)
        for n in range(kLayers):
            x = x + self.attention(self.norm(x, 2 * n), n, first, cache)
            x = x + self.mlp(self.norm(x, 2 * n + 1), n)
        return torch.matmul(self.norm(x, 2 * kLayers), self.m_table.t())   # (B, T, kVocab)


class OwnAdam(torch.optim.Optimizer):
    def __init__(self, params, lr, beta1=0.9, beta2=0.999, eps=1e-8):
        super().__init__(params, dict(lr=lr, beta1=beta1, beta2=beta2, eps=eps, count=0))

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            g["count"] += 1
            fix1, fix2 = 1.0 - g["beta1"] ** g["count"], 1.0 - g["beta2"] ** g["count"]
            for p in [p for p in g["params"] if p.grad is not None]:
                s = self.state[p]
                if len(s) == 0:
                    s["m"], s["v"] = torch.zeros_like(p), torch.zeros_like(p)
                s["m"].mul_(g["beta1"]).add_(p.grad, alpha=1.0 - g["beta1"])
                s["v"].mul_(g["beta2"]).addcmul_(p.grad, p.grad, value=1.0 - g["beta2"])
                m, v = s["m"] / fix1, s["v"] / fix2
                p.sub_(g["lr"] * m / (v.sqrt() + g["eps"]))


def pack(lines):
    rows = [list(line.encode("utf-8"))[:kMaxLen - 1] + [kEnd] for line in lines]
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [kPad] * (longest - len(row)) for row in rows])


torch.manual_seed(20)
batch = pack(["for (;;) { tick(); }", "int main() { return 0; }", "while (x > 0) --x;",
              "auto p = std::move(q);", "if (!ok) throw Error();", "delete[] buffer;"])
kind, pad_id, eos_id, max_length = "causal", kPad, kEnd, kMaxLen
temperature, tied, steps = kTemperature, True, kSteps
model = ByteModel()
optimizer = OwnAdam(model.parameters(), lr=kPeak)


def schedule(step):
    if step < kWarm:
        return kStart + (kPeak - kStart) * (step + 1) / kWarm
    part = min(1.0, (step - kWarm) / (kSteps - kWarm))
    return kFloor + 0.5 * (kPeak - kFloor) * (1.0 + math.cos(math.pi * part))


def nll_sum(ids):
    logits, goal = model(ids[:, :-1]), ids[:, 1:]
    nll = logits.logsumexp(dim=-1) - logits.gather(-1, goal[..., None]).squeeze(-1)
    real = goal != kPad
    return (nll * real).sum(), real.sum()


def loss(ids):
    total, count = nll_sum(ids)
    return total / count


def train_step(ids):
    model.train()
    optimizer.param_groups[0]["lr"] = schedule(optimizer.param_groups[0]["count"])
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return value.item()


@torch.no_grad()
def quiet(work, *args):                 # run in eval mode, put the mode back after
    was = model.training
    model.eval()
    result = work(*args)
    model.train(was)
    return result


def evaluate(batches):
    parts = [quiet(nll_sum, ids) for ids in batches]
    return sum(total.item() for total, _ in parts) / sum(count.item() for _, count in parts)


def generate(ids, count):
    for _ in range(count):
        best = quiet(model, ids[:, -kMaxLen:])[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat((ids, best), dim=1)
    return ids


def cached(ids):
    cache = torch.zeros(kLayers, 2, ids.size(0), kHeads, kTable, kHeadDim)
    return torch.cat([quiet(model, ids[:, t:t + 1], t, cache) for t in range(ids.size(1))], dim=1)


def sample(ids):
    logits = quiet(model, ids[:, -kMaxLen:])[:, -1] / kTemperature
    return torch.cat((ids, torch.multinomial(logits.softmax(dim=-1), 1)), dim=1)


if __name__ == "__main__":
    curve = [train_step(batch) for _ in range(kSteps)]
    print("loss %.3f -> %.3f, read back %.3f" % (curve[0], curve[-1], evaluate([batch])))

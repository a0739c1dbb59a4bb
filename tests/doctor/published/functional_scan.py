"""decoder-only LM, functional: params in, arrays out. Every weight has a leading layer axis, as for lax.scan."""
import torch
from torch import nn

L, D, H, K, F, V, T = 3, 32, 4, 8, 64, 40, 48  # layers, model, heads, key, hidden, vocabulary, longest
PAD, BOS, EOS = 0, 1, 2
RATE, NEG, STEPS, WARM, PEAK, EPOCH = 0.1, -1e9, 160, 40, 4e-3, 16

class Params(nn.Module):
    """A pytree, nothing more. .training is the only flag that apply reads."""
    def __init__(self, tree):
        super().__init__()
        self.tree = nn.ParameterDict({name: nn.Parameter(value) for name, value in tree.items()})

def init(seed):
    g = torch.Generator().manual_seed(seed)
    normal = lambda std, *shape: torch.randn(*shape, generator=g) * std
    return {
        "emb": normal(0.02, V, D),
        "wqkv": normal(D**-0.5, L, 3, D, H, K),
        "wo": normal((H * K) ** -0.5 * (2 * L) ** -0.5, L, H, K, D),
        "w1": normal(D**-0.5, L, D, F),
        "b1": torch.zeros(L, F),
        "w2": normal(F**-0.5 * (2 * L) ** -0.5, L, F, D),
        "b2": torch.zeros(L, D),
        "g1": torch.ones(L, D),
        "g2": torch.ones(L, D),
        "gf": torch.ones(D),
    }

def norm(x, gain):
    x = x - x.mean(-1, keepdim=True)
    return gain * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()

def dropout(x, on):
    return x * (torch.rand_like(x) >= RATE) / (1 - RATE) if on else x

def alibi(queries, keys):
    slopes = 2.0 ** (-8.0 * (torch.arange(H) + 1) / H)
    distance = (keys[None, :] - queries[:, None]).float()  # zero or negative in the past
    return torch.vmap(lambda slope: slope * distance)(slopes)

def block(p, x, bias, on, memory=None):
    h = norm(x, p["g1"])
    q, k, v = torch.einsum("btd,cdhk->cbthk", h, p["wqkv"])
    if memory is not None:
        keys, values, t = memory
        keys[:, t], values[:, t] = k[:, 0], v[:, 0]
        k, v = keys, values
    scores = torch.einsum("bqhk,bshk->bhqs", q, k) * K**-0.5 + bias
    weights = dropout(torch.softmax(scores, -1), on)
    mixed = torch.einsum("bhqs,bshk->bqhk", weights, v)
    attended = torch.einsum("bqhk,hkd->bqd", mixed, p["wo"])
    x = x + dropout(attended, on)
    h = torch.nn.functional.gelu(norm(x, p["g2"]) @ p["w1"] + p["b1"])
    return x + dropout(h @ p["w2"] + p["b2"], on)

STACKED = ("wqkv", "wo", "w1", "b1", "w2", "b2", "g1", "g2")

def scan(params, x, bias, on, memories=None):
    for layer in range(L):
        p = {name: params.tree[name][layer] for name in STACKED}
        x = block(p, x, bias, on, None if memories is None else memories[layer])
    return norm(x, params.tree["gf"]) @ params.tree["emb"].T

def apply(params, ids):
    n = torch.arange(ids.shape[1])
    seen = (n[None, :] <= n[:, None])[None, None] & (ids != PAD)[:, None, None, :]
    bias = alibi(n, n)[None] + torch.where(seen, 0.0, NEG)
    x = dropout(params.tree["emb"][ids], params.training)
    return scan(params, x, bias, params.training)

def decode(params, token, t, memories, longest):
    n = torch.arange(longest)
    live = n <= t  # the rest of the buffer is not written yet
    bias = (alibi(torch.tensor([t]), n) + torch.where(live, 0.0, NEG))[None]
    return scan(params, params.tree["emb"][token], bias, False, [(k, v, t) for k, v in memories])

def token_nll(params, ids):
    logp = torch.log_softmax(apply(params, ids[:, :-1]), -1)
    return -torch.gather(logp, -1, ids[:, 1:, None])[..., 0]

def loss_fn(params, ids):
    weights = (ids[:, 1:] != PAD).float()
    return (token_nll(params, ids) * weights).sum() / weights.sum()

class AdamW(torch.optim.Optimizer):
    def __init__(self, groups, lr, b1=0.9, b2=0.98, eps=1e-8):
        super().__init__(groups, dict(lr=lr, b1=b1, b2=b2, eps=eps, decay=0.0))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad, s = p.grad, self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"].mul_(group["b1"]).add_(grad, alpha=1 - group["b1"])
                s["v"].mul_(group["b2"]).addcmul_(grad, grad, value=1 - group["b2"])
                m_hat = s["m"] / (1 - group["b1"] ** s["t"])
                v_hat = s["v"] / (1 - group["b2"] ** s["t"])
                p.mul_(1 - group["lr"] * group["decay"])
                p.sub_(group["lr"] * m_hat / (v_hat.sqrt() + group["eps"]))

def schedule(step):
    warm = min(1.0, (step + 1) / WARM)
    return PEAK * warm * min(1.0, max(0.0, (STEPS - step) / (STEPS - WARM)))

def train_step(ids):
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = schedule(clock["step"])
    value = loss_fn(model, ids)
    leaves = list(model.parameters())
    for leaf, grad in zip(leaves, torch.autograd.grad(value, leaves)):
        leaf.grad = grad
    optimizer.step()
    clock["step"] += 1
    return value.item()

@torch.no_grad()
def evaluate(batches):
    before = model.training
    model.eval()
    total, count = 0.0, 0.0
    for ids in batches:
        ids = ids[0] if isinstance(ids, (tuple, list)) else ids
        scored = ids[:, 1:] != PAD
        total, count = total + token_nll(model, ids)[scored].sum().item(), count + scored.sum().item()
    model.train(before)
    return total / count

@torch.no_grad()
def generate(ids, count):  # unpadded prompts
    before = model.training
    model.eval()
    for _ in range(count):
        ids = torch.cat([ids, apply(model, ids)[:, -1:].argmax(-1)], 1)
    model.train(before)
    return ids

@torch.no_grad()
def cached(ids):
    memories = [(torch.zeros(len(ids), ids.shape[1], H, K), torch.zeros(len(ids), ids.shape[1], H, K)) for _ in range(L)]
    return torch.cat([decode(model, ids[:, t : t + 1], t, memories, ids.shape[1]) for t in range(ids.shape[1])], 1)

def rows(count, seed):
    g = torch.Generator().manual_seed(seed)
    out = torch.full((count, 24), PAD)
    for row in out:
        n, a, b = (int(torch.randint(*span, (1,), generator=g)) for span in ((5, 23), (3, V), (3, V)))
        row[:n] = torch.tensor([BOS] + [(a, b)[i % 2] for i in range(n - 2)] + [EOS])
    return out[:, : int((out != PAD).sum(1).max())]

torch.manual_seed(3)
model = Params(init(3))
batch = rows(8, 0)
kind, pad_id, eos_id, start_id, max_length, steps = "causal", PAD, EOS, BOS, T, STEPS
forward = lambda ids: apply(model, ids)
loss = lambda ids: loss_fn(model, ids)
matrices = [p for name, p in model.tree.items() if name in ("wqkv", "wo", "w1", "w2")]
others = [p for name, p in model.tree.items() if name not in ("wqkv", "wo", "w1", "w2")]
optimizer = AdamW([{"params": matrices, "decay": 0.1}, {"params": others}], lr=PEAK)
clock = {"step": 0}

if __name__ == "__main__":
    for epoch in range(4):
        print([round(train_step(rows(8, epoch * EPOCH + i)), 2) for i in range(EPOCH)], evaluate([rows(16, 999)]))

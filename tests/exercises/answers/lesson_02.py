"""What learners might write for the exercises of lesson 02."""

import math

import torch

from tests.exercises.answers import right, wrong

# sinusoidal_encoding(n_positions, d_model, base=10000.0)


@wrong("sinusoidal_encoding", "usual", "the base is always 10000")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions)[:, None]
    two_i = torch.arange(0, d_model, 2)
    angle = pos / 10000 ** (two_i / d_model)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2], PE[:, 1::2] = angle.sin(), angle.cos()
    return PE


@wrong("sinusoidal_encoding", "usual", "all sines in the left half, all cosines in the right")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions, dtype=torch.float32).unsqueeze(1)
    inv_freq = 1.0 / (base ** (torch.arange(0, d_model, 2).float() / d_model))
    angles = pos * inv_freq
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)


@wrong("sinusoidal_encoding", "usual", "positions count from 1")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for pos in range(1, n_positions + 1):
        for i in range(0, d_model, 2):
            angle = pos / base ** (i / d_model)
            PE[pos - 1, i] = math.sin(angle)
            PE[pos - 1, i + 1] = math.cos(angle)
    return PE


@wrong("sinusoidal_encoding", "usual", "cosine in the even dimensions, sine in the odd ones")
def _(n_positions, d_model, base=10000.0):
    encoding = torch.empty(n_positions, d_model)
    angles = torch.outer(
        torch.arange(n_positions).float(), base ** (-torch.arange(0, d_model, 2) / d_model)
    )
    encoding[:, ::2] = torch.cos(angles)
    encoding[:, 1::2] = torch.sin(angles)
    return encoding


@wrong("sinusoidal_encoding", "usual", "the exponent is i / d_model: the factor 2 is missing")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            denominator = base ** (i / d_model)
            PE[pos, 2 * i] = math.sin(pos / denominator)
            PE[pos, 2 * i + 1] = math.cos(pos / denominator)
    return PE


@wrong("sinusoidal_encoding", "usual", "an odd dimension has an exponent of its own")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions)[:, None]
    dim = torch.arange(d_model)[None, :]
    angle = pos / base ** (dim / d_model)
    return torch.where(dim % 2 == 0, angle.sin(), angle.cos())


@wrong("sinusoidal_encoding", "usual", "a batch axis in front, as in PyTorch's tutorial")
def _(n_positions, d_model, base=10000.0):
    pe = torch.zeros(n_positions, d_model)
    position = torch.arange(0, n_positions, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe.unsqueeze(0)


@wrong("sinusoidal_encoding", "unusual", "dimensions down, positions across")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions)[None, :]
    freq = base ** (-torch.arange(0, d_model, 2)[:, None] / d_model)
    angle = freq * pos  # (d_model / 2, n)
    return torch.stack([angle.sin(), angle.cos()], dim=1).flatten(0, 1)


@wrong("sinusoidal_encoding", "unusual", "doubles 0, 2, 4, ... once more in the exponent")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            PE[pos, i] = math.sin(pos / (base ** ((2 * i) / d_model)))
            PE[pos, i + 1] = math.cos(pos / (base ** ((2 * i) / d_model)))
    return PE


@wrong("sinusoidal_encoding", "unusual", "multiplies 2i outside the exponent")
def _(n_positions, d_model, base=10000.0):
    two_i = torch.arange(0, d_model, 2).float()
    omega = two_i * math.exp(-math.log(base) / d_model)
    angle = torch.arange(n_positions).float()[:, None] * omega
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2] = angle.sin()
    PE[:, 1::2] = angle.cos()
    return PE


@wrong("sinusoidal_encoding", "unusual", "whole-number division makes every exponent 0")
def _(n_positions, d_model, base=10000.0):
    rows = []
    for pos in range(n_positions):
        row = []
        for j in range(d_model):
            angle = pos / base ** (2 * (j // 2) // d_model)
            row.append(math.cos(angle) if j % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


@wrong("sinusoidal_encoding", "unusual", "the last pair reaches base itself, as in tensor2tensor")
def _(n_positions, d_model, base=10000.0):
    n_pairs = d_model // 2
    step = math.log(base) / max(n_pairs - 1, 1)
    omega = torch.exp(-step * torch.arange(n_pairs))
    angle = torch.arange(n_positions)[:, None] * omega
    return torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(n_positions, d_model)


@wrong("sinusoidal_encoding", "unusual", "logarithm to base 10 against a natural exponential")
def _(n_positions, d_model, base=10000.0):
    div = torch.exp(-torch.arange(0, d_model, 2) * math.log10(base) / d_model)
    x = torch.arange(n_positions).unsqueeze(1) * div
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2] = torch.sin(x)
    PE[:, 1::2] = torch.cos(x)
    return PE


@wrong("sinusoidal_encoding", "unusual", "the loop ends before the last pair, which stays 0")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    pos = torch.arange(n_positions).float()
    for i in range(0, d_model - 2, 2):
        angle = pos / base ** (i / d_model)
        PE[:, i] = torch.sin(angle)
        PE[:, i + 1] = torch.cos(angle)
    return PE


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "positions in bfloat16, rounded from 257 on (n_positions = 300)",
)
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions, dtype=torch.bfloat16)[:, None].float()
    omega = base ** (-torch.arange(0, d_model, 2) / d_model)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2] = (pos * omega).sin()
    PE[:, 1::2] = (pos * omega).cos()
    return PE


@wrong("sinusoidal_encoding", "unusual", "multiplies by base ** (2i / d_model) instead of dividing")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions, dtype=torch.float64)[:, None]
    angle = pos * base ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    PE = torch.stack([angle.sin(), angle.cos()], dim=2)
    return PE.flatten(1).float()


@wrong("sinusoidal_encoding", "unusual", "divides the position by the length, so it ends at 1")
def _(n_positions, d_model, base=10000.0):
    pos = torch.linspace(0, 1, n_positions).unsqueeze(1)
    angle = pos / base ** (torch.arange(0, d_model, 2) / d_model)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2] = angle.sin()
    PE[:, 1::2] = angle.cos()
    return PE


@wrong("sinusoidal_encoding", "unusual", "takes the sine of degrees")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = math.radians(pos / base ** (2 * i / d_model))
            PE[pos, 2 * i : 2 * i + 2] = torch.tensor([math.sin(angle), math.cos(angle)])
    return PE


@wrong("sinusoidal_encoding", "unusual", "rounds every number to half precision on the way out")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions).float()
    omega = torch.pow(base, -torch.arange(0, d_model, 2) / d_model)
    PE = torch.empty(n_positions, d_model, dtype=torch.float16)
    PE[:, 0::2] = torch.outer(pos, omega).sin()
    PE[:, 1::2] = torch.outer(pos, omega).cos()
    return PE


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "too few rows for n_positions above 5,000, the tutorial's max_len",
)
def _(n_positions, d_model, base=10000.0):
    max_len = 5000
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(0, max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe[:n_positions, :]


@wrong(
    "sinusoidal_encoding",
    "unusual",
    "OverflowError from d_model = 80 on: base ** 2i before the root",
)
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for i in range(d_model // 2):
        wavelength = (base ** (2 * i)) ** (1 / d_model)
        for pos in range(n_positions):
            PE[pos, 2 * i] = math.sin(pos / wavelength)
            PE[pos, 2 * i + 1] = math.cos(pos / wavelength)
    return PE


@wrong("sinusoidal_encoding", "unusual", "the same in float32: a power of inf, an angle of 0")
def _(n_positions, d_model, base=10000.0):
    powers = torch.pow(torch.tensor(base), torch.arange(0, d_model, 2)) ** (1 / d_model)
    angle = torch.arange(n_positions)[:, None] / powers
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


@wrong("sinusoidal_encoding", "pair", "base is ignored", "sines left, cosines right")
def _(n_positions, d_model, base=10000.0):
    positions = torch.arange(n_positions)[:, None]
    depths = torch.arange(d_model // 2)[None, :] / (d_model / 2)
    angle_rads = positions * (1 / 10000**depths)
    return torch.cat((angle_rads.sin(), angle_rads.cos()), dim=1)


@wrong("sinusoidal_encoding", "pair", "positions from 1", "sine and cosine swapped")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for row in range(n_positions):
        for dim in range(1, d_model + 1):
            angle = (row + 1) / base ** (2 * ((dim - 1) // 2) / d_model)
            PE[row, dim - 1] = math.sin(angle) if dim % 2 == 0 else math.cos(angle)
    return PE


@wrong("sinusoidal_encoding", "pair", "the result is transposed", "exponent i / d_model")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(d_model, n_positions)
    p = torch.arange(n_positions)
    for i in range(d_model // 2):
        PE[2 * i] = torch.sin(p / base ** (i / d_model))
        PE[2 * i + 1] = torch.cos(p / base ** (i / d_model))
    return PE


@wrong("sinusoidal_encoding", "pair", "a batch axis in front", "odd dimensions turn more slowly")
def _(n_positions, d_model, base=10000.0):
    angle = torch.arange(n_positions).view(-1, 1) / base ** (torch.arange(d_model) / d_model)
    PE = torch.zeros_like(angle)
    PE[:, 0::2] = angle[:, 0::2].sin()
    PE[:, 1::2] = angle[:, 1::2].cos()
    return PE[None]


@wrong("sinusoidal_encoding", "pair", "base is ignored", "the last pair stays 0")
def _(n_positions, d_model, base=10000.0):
    PE = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for i in range(d_model // 2 - 1):
            theta = pos / math.pow(10_000, 2 * i / d_model)
            PE[pos, 2 * i] = math.sin(theta)
            PE[pos, 2 * i + 1] = math.cos(theta)
    return PE


@wrong("sinusoidal_encoding", "pair", "logarithm to base 10", "positions from 1")
def _(n_positions, d_model, base=10000.0):
    position = torch.arange(1, n_positions + 1).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log10(base) / d_model))
    return torch.stack([(position * div_term).sin(), (position * div_term).cos()], -1).flatten(1)


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    pos = torch.arange(n_positions)[:, None]
    two_i = torch.arange(0, d_model, 2)
    angle = pos / base ** (two_i / d_model)
    PE = torch.zeros(n_positions, d_model)
    PE[:, 0::2], PE[:, 1::2] = angle.sin(), angle.cos()
    return PE


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    rows = [
        [
            (math.cos if j % 2 else math.sin)(pos / base ** (2 * (j // 2) / d_model))
            for j in range(d_model)
        ]
        for pos in range(n_positions)
    ]
    return torch.tensor(rows)


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    # one complex number of length 1 per pair: cos + i sin
    log_omega = -math.log(base) * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * log_omega.exp()
    hands = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(hands).flip(-1).flatten(-2).float()


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    # a cosine is a sine a quarter turn ahead
    dim = torch.arange(d_model, dtype=torch.double)
    even = dim - dim % 2
    angle = torch.arange(n_positions, dtype=torch.double)[:, None] * base ** (-even / d_model)
    return torch.sin(angle + (dim % 2) * math.pi / 2).to(torch.float32)


@right("sinusoidal_encoding")
def _(n_positions, d_model, base=10000.0):
    # walk: every pair is turned by its own angle from one position to the next
    omega = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    cosine, sine = omega.cos(), omega.sin()
    s, c = torch.zeros_like(omega), torch.ones_like(omega)
    rows = []
    for _ in range(n_positions):
        rows.append(torch.stack([s, c], dim=1).flatten())
        s, c = s * cosine + c * sine, c * cosine - s * sine
    return torch.stack(rows).float()


# shift_matrix(k, d_model, base=10000.0)


def frequencies(d_model, base):
    return base ** (-torch.arange(0, d_model, 2) / d_model)


def block(angle):
    sine, cosine = angle.sin(), angle.cos()
    return torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])


@wrong("shift_matrix", "usual", "written for columns, so that it turns back")
def _(k, d_model, base=10000.0):
    R = torch.zeros(d_model, d_model)
    for i, omega in enumerate(frequencies(d_model, base)):
        c, s = torch.cos(k * omega), torch.sin(k * omega)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor([[c, s], [-s, c]])
    return R


@wrong("shift_matrix", "usual", "both sines are positive")
def _(k, d_model, base=10000.0):
    R = torch.eye(d_model)
    for i, omega in enumerate(frequencies(d_model, base)):
        R[2 * i, 2 * i] = R[2 * i + 1, 2 * i + 1] = torch.cos(k * omega)
        R[2 * i, 2 * i + 1] = R[2 * i + 1, 2 * i] = torch.sin(k * omega)
    return R


@wrong("shift_matrix", "usual", "the base is always 10000")
def _(k, d_model, base=10000.0):
    angles = k * frequencies(d_model, 10000.0)
    return torch.block_diag(
        *(
            torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
            for a in angles
        )
    )


@wrong("shift_matrix", "usual", "all hands turn by k radians")
def _(k, d_model, base=10000.0):
    return torch.block_diag(*[block(torch.tensor(float(k)))] * (d_model // 2))


@wrong("shift_matrix", "usual", "the exponent is i / d_model: the factor 2 is missing")
def _(k, d_model, base=10000.0):
    R = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        a = k / base ** (i / d_model)
        R[2 * i][2 * i], R[2 * i][2 * i + 1] = math.cos(a), -math.sin(a)
        R[2 * i + 1][2 * i], R[2 * i + 1][2 * i + 1] = math.sin(a), math.cos(a)
    return R


@wrong("shift_matrix", "unusual", "solved from the encodings of places 0 and k alone")
def _(k, d_model, base=10000.0):
    PE = lambda p: torch.stack([p * frequencies(d_model, base)] * 2).T  # noqa: E731
    here, there = (torch.stack([x[:, 0].sin(), x[:, 1].cos()], 1).flatten() for x in (PE(0), PE(k)))
    return torch.outer(here, there) / here.square().sum()


@wrong("shift_matrix", "unusual", "the encoding of place k on the diagonal")
def _(k, d_model, base=10000.0):
    angles = k * frequencies(d_model, base)
    return torch.diag(torch.stack([angles.sin(), angles.cos()], dim=1).flatten())


@right("shift_matrix")
def _(k, d_model, base=10000.0):
    """The k-th power of one step."""
    angles = frequencies(d_model, base).double()
    step = torch.block_diag(
        *(
            torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])
            for a in angles
        )
    )
    return torch.linalg.matrix_power(step, k)


@right("shift_matrix")
def _(k, d_model, base=10000.0):
    """Two diagonals beside the main one."""
    angles = k * frequencies(d_model, base)
    beside = torch.stack([angles.sin(), torch.zeros(d_model // 2)], dim=1).flatten()[:-1]
    cosines = torch.diag(angles.cos().repeat_interleave(2))
    return cosines + torch.diag(beside, -1) - torch.diag(beside, 1)

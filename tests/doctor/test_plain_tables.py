"""A table that no module holds: what is looked up as `table[ids]` can be changed, too."""

import torch
from torch import nn

from transformer_lesson.doctor import examine

PAD = 0


class Plain(nn.Module):
    """Each word reads the mean of the words up to it; padding too, unless it is hidden."""

    def __init__(self, hides: bool):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Parameter(torch.randn(20, 16))
        self.head = nn.Parameter(torch.randn(16, 20) / 4)
        self.hides = hides

    def forward(self, ids):
        seen = torch.ones(ids.size(1), ids.size(1)).tril() * torch.ones(len(ids), 1, 1)
        if self.hides:
            seen = seen * (ids != PAD)[:, None]
        weights = seen / seen.sum(-1, keepdim=True).clamp(min=1)
        return (weights @ self.table[ids]) @ self.head


def said(hides: bool) -> list[str]:
    ids = torch.randint(1, 20, (6, 10), generator=torch.Generator().manual_seed(1))
    ids[:3, :4] = PAD
    report = examine(Plain(hides), ids, pad_id=PAD, padding_side="left", only={"padding", "tokens"})
    assert "tokens" not in report.skipped
    return report.codes


def test_padding_that_is_read_in_a_plain_table_is_told_from_padding_that_is_hidden():
    assert said(hides=False) == ["padding_read"] and said(hides=True) == []

"""What learners might write for the exercises of lesson 08."""

import torch.nn.functional as F

from tests.exercises.answers import right


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    # autograd, of PyTorch's own loss
    z = logits.detach().clone().requires_grad_()
    F.cross_entropy(
        z.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    ).backward()
    return z.grad

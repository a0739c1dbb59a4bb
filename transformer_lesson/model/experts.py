"""A mixture of experts: many feed-forward networks, and each token passes through a few.

The parameters grow with the number of experts, the work per token only with the number chosen.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def route(
    x: Float[Tensor, "n d_model"], W_router: Float[Tensor, "d_model expert"], k: int
) -> tuple[Float[Tensor, "n expert"], Float[Tensor, ""]]:
    """Choose k experts for each token, and measure how evenly the tokens spread.

    The router gives each expert a probability, p = softmax(x W_router). A token's k most probable
    experts keep theirs as weights, all others get 0; ties go to the first. The balance loss is

        E * sum over the experts of share * mean p,

    with `share` the expert's part of all n k choices, and the mean taken over the tokens. It is 1
    if everything is even, and E if every token trusts a single expert. Only the mean of p has a
    gradient: it lowers the probability of experts that are chosen too often.

    Args:
        x: the tokens' vectors, shape (n, d_model).
        W_router: shape (d_model, E), multiplied from the right.
        k: experts for each token.

    Returns:
        The weights, shape (n, E), and the balance loss, a number.

    Raises:
        ValueError: k is not from 1 to E.

    Source: Shazeer et al., "Outrageously Large Neural Networks" (2017), section 2.1; Fedus et
        al., "Switch Transformers" (2021), equations 1 and 4 to 6.
    Differs: Mixtral and others divide a token's k weights by their sum. With k = 1 that would
        make each weight 1, and no gradient of the loss would reach the router.
    """
    n_experts = W_router.size(-1)
    if not 1 <= k <= n_experts:
        raise ValueError(f"k is {k}, but a token passes through 1 to {n_experts} experts.")
    probabilities = (x @ W_router).softmax(dim=-1)  # (n, expert)
    best = probabilities.argsort(dim=-1, descending=True, stable=True)[:, :k]  # (n, k)
    chosen = F.one_hot(best, n_experts).sum(dim=1)  # (n, expert), 1 where chosen
    share = chosen.to(x.dtype).mean(dim=0) / k  # (expert,)
    balance_loss = n_experts * (share * probabilities.mean(dim=0)).sum()
    return probabilities * chosen, balance_loss

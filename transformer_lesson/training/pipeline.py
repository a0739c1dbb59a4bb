"""A model over several devices, by layers or by experts: which computes what, and which waits.

**A pipeline.** Each device, a stage, has some of the blocks. A batch is cut into parts (the
papers' micro-batches), which follow one another through the stages, forward and then back. At the
beginning and end of a step stages wait: the bubble.

**Experts.** Each device has some of a layer's experts, and tokens travel to theirs. All devices
wait for the one that got the most tokens.

Time is counted in steps: one for a forward pass of a part through a stage, two for the backward
pass, which has twice as many products. Sending takes none.
"""

from itertools import chain
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.config import size
from transformer_lesson.model.masks import target_masks
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.training.loss import label_smoothed_loss
from transformer_lesson.training.memory import Parts

FORWARD, BACKWARD = 1, 2  # steps
ORDERS = ("GPipe", "1F1B")


class Work(NamedTuple):
    """One pass of one part through one stage, from `start` to `end`, in steps."""

    stage: int
    part: int
    backward: bool
    start: int

    @property
    def end(self) -> int:
        """Return the step after its last."""
        return self.start + (BACKWARD if self.backward else FORWARD)


def bubble_share(stages: int, parts: int) -> float:
    """Return the share of a step's time that each stage of a pipeline waits.

        (p - 1) / (m + p - 1)    with p stages and m parts

    Source: Huang et al., "GPipe" (2019), section 2.3, there as an order of magnitude.
    """
    return (stages - 1) / (parts + stages - 1)


def order_of_work(stage: int, stages: int, parts: int, order: str) -> list[tuple[int, bool]]:
    """Return the (part, backward) that a stage works on, one after the other.

    "GPipe" takes all parts forward, and then all back, the last one first. "1F1B" begins with as
    many as it takes until the first comes back, and from then on alternates: one forward, one
    backward. It waits just as long, but needs what forward passes leave behind for less time.

    Source: Huang et al., "GPipe" (2019), figure 2c; Narayanan et al., "Memory-Efficient
        Pipeline-Parallel DNN Training" (2020), PipeDream-Flush, and "Efficient Large-Scale
        Language Model Training on GPU Clusters" (2021), section 2.2, for 1F1B.
    """
    forward, backward = [(i, False) for i in range(parts)], [(i, True) for i in range(parts)]
    if order == "GPipe":
        return [*forward, *reversed(backward)]
    first = min(parts, stages - stage - 1)
    pairs = zip(forward[first:], backward, strict=False)
    return [*forward[:first], *chain.from_iterable(pairs), *backward[parts - first :]]


def pipeline(stages: int, parts: int, order: str = "1F1B") -> list[list[Work]]:
    """Return what each stage does in a training step, each pass as early as it can begin.

    A part goes forward through a stage once it has left the stage before, and back once it has come
    back from the stage after; at the last stage, as soon as it has gone forward.

    Args:
        stages: devices.
        parts: how many parts (micro-batches) a batch is cut into.
        order: "GPipe" or "1F1B"; see `order_of_work`.

    Raises:
        ValueError: no stage, no part, or another order.
    """
    stages, parts = size.check("stages", stages), size.check("parts", parts)
    if order not in ORDERS:
        raise ValueError(f"order is {order!r}, but a pipeline's is one of {', '.join(ORDERS)}.")
    todo = [order_of_work(stage, stages, parts, order) for stage in range(stages)]
    done: list[list[Work]] = [[] for _ in range(stages)]
    ends: dict[tuple[int, int, bool], int] = {}
    while any(todo):
        for stage in range(stages):
            if todo[stage]:
                part, backward = todo[stage][0]
                needs = _needed(stage, stages, part, backward)
                if needs is None or needs in ends:
                    free = done[stage][-1].end if done[stage] else 0
                    work = Work(stage, part, backward, max(free, ends.get(needs, 0)))
                    done[stage].append(work)
                    ends[stage, part, backward] = work.end
                    todo[stage].pop(0)
    return done


def _needed(stage: int, stages: int, part: int, backward: bool) -> tuple[int, int, bool] | None:
    """Return (stage, part, backward) of the work that must come before, if there is any."""
    if backward:
        return (stage + 1, part, True) if stage < stages - 1 else (stage, part, False)
    return (stage - 1, part, False) if stage else None


def parts_kept(works: list[Work]) -> int:
    """Return the largest number of parts whose activations a stage keeps at once."""
    kept = most = 0
    for work in works:
        kept += -1 if work.backward else 1
        most = max(most, kept)
    return most


def learn_in_stages(
    model: DecoderOnlyTransformer, parts: Parts, stages: int, order: str = "1F1B"
) -> float:
    """Run a pipeline, one pass after the other; return the batch's mean loss.

    Between two stages only vectors travel, and on the way back their gradients. The gradient of
    the whole batch is added to the weights, as if nothing had been cut.

    Args:
        model: its blocks are divided equally; the first stage also has the embedding, the last
            one the projection.
        parts: of a batch, with their shares of the labels, as `split_batch` gives them.
        stages, order: as for `pipeline`.

    Raises:
        ValueError: stages does not divide the number of blocks.

    Differs: here one process does the work of all stages; on separate devices they work at the
        same time, as `pipeline` says.
    """
    each, rest = divmod(len(model.decoder), max(1, stages))
    if rest:
        n = len(model.decoder)
        raise ValueError(f"stages is {stages}: make it a divisor of the model's {n} blocks.")
    inputs: dict[tuple[int, int], Tensor] = {}  # by (stage, part)
    outputs: dict[tuple[int, int], Tensor] = {}  # the last stage's are losses
    loss, works = 0.0, chain.from_iterable(pipeline(stages, len(parts), order))
    for stage, i, backward, _ in sorted(works, key=lambda work: work.start):
        batch, share = parts[i]
        if backward and stage == stages - 1:
            outputs.pop((stage, i)).backward()
        elif backward:
            outputs.pop((stage, i)).backward(inputs.pop((stage + 1, i)).grad)
        else:
            ids = batch.inputs[0]
            x = outputs[stage - 1, i].detach().requires_grad_() if stage else model.embedding(ids)
            inputs[stage, i], masks = x, target_masks(ids, model.config)
            in_stage = slice(stage * each, (stage + 1) * each)
            for block, mask in zip(model.decoder[in_stage], masks[in_stage], strict=True):
                x = block(x, mask)
            if stage == stages - 1:
                logits = model.read_out(x)
                x = share * label_smoothed_loss(logits, batch.labels, pad_id=model.config.pad_id)
                loss += x.item()
            outputs[stage, i] = x
    return loss


def sent_to_devices(
    weights: Float[Tensor, "n expert"], devices: int
) -> list[list[tuple[int, int]]]:
    """Return what each device has to compute: pairs of a token and one of its experts.

    Experts are assigned in their order: of 8 experts on 4 devices, the first has 0 and 1.

    Args:
        weights: as `route` gives them: 0 where an expert was not chosen.
        devices: must divide the number of experts.

    Raises:
        ValueError: devices does not divide the number of experts.

    Source: Lepikhin et al., "GShard" (2020), section 2.2.
    Differs: theirs have room for a fixed number of tokens each, and skip the rest.
    """
    n_experts = weights.size(1)
    if devices < 1 or n_experts % devices:
        raise ValueError(f"devices is {devices}: make it a divisor of the {n_experts} experts.")
    sent: list[list[tuple[int, int]]] = [[] for _ in range(devices)]
    for token, expert in weights.nonzero().tolist():
        sent[expert * devices // n_experts].append((token, expert))
    return sent


def waiting_share(sent: list[list[tuple[int, int]]]) -> float:
    """Return the share of the time that devices wait for the fullest one, on average."""
    most = max(map(len, sent))
    return 1 - sum(map(len, sent)) / (len(sent) * most)

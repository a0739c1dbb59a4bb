"""What training or generation keeps in memory, and which change makes it fit."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.training.memory_needs import KEYS, Sizes, groups_of, parameters_of

MODELS = {
    "lesson 10’s": Sizes(2, 64, 4, 100, 128),
    "GPT-2 small": Sizes(12, 768, 12, 50257, 1024),
    "GPT-2 XL": Sizes(48, 1600, 25, 50257, 1024),
    "GPT-3 6.7B": Sizes(32, 4096, 32, 50257, 2048),
    "GPT-3 175B": Sizes(96, 12288, 96, 50257, 2048),
}
"""By name; the GPT-2 and GPT-3 sizes are those of Radford et al. (2019) and Brown et al. (2020)."""


class WillItFit(PageExplorable):
    """Choose a model, a text and a device, and see the memory needed to train it or to write.

    Args:
        to: "train" or "write".
        size: the model's index in `MODELS`.
        bits: of weights, gradients and activations; 8 and 4 only for weights when writing.
        batch: texts at once: per device when training, in total when writing.
        tokens: of each text.
        kept: what the cache keeps of a token when writing; see `kept_of_a_token`.
        table: whether attention keeps its table of weights.
        twice: whether blocks are recomputed instead of kept.
        devices: number of devices that share weights, gradients and optimizer.
        memory: of each device, in GiB.
    """

    to = traitlets.Enum(("train", "write"), "train").tag(sync=True)
    size = traitlets.Enum(tuple(range(len(MODELS))), 1).tag(sync=True)
    bits = traitlets.Enum((32, 16, 8, 4), 32).tag(sync=True)
    batch = traitlets.Enum((1, 8, 64), 8).tag(sync=True)
    tokens = traitlets.Enum((128, 1024, 8192), 1024).tag(sync=True)
    kept = traitlets.Enum(KEYS, KEYS[0]).tag(sync=True)
    table = traitlets.Bool(True).tag(sync=True)
    twice = traitlets.Bool(False).tag(sync=True)
    devices = traitlets.Enum((1, 2, 8, 64, 512), 1).tag(sync=True)
    memory = traitlets.Enum((8, 24, 80, 141), 24).tag(sync=True)
    models = traitlets.List().tag(sync=True, fact=True)

    def __init__(self, **values):
        models = [
            {"name": name, **sizes._asdict(), "parameters": parameters_of(sizes)}
            | {"groups": groups_of(sizes)}
            for name, sizes in MODELS.items()
        ]
        super().__init__(models=models, **values)

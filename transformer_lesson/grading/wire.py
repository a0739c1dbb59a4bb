"""What goes between the judge and a student's process: plain data, nothing that is ever run.

A message is JSON, and the tensors in it in safetensors form; before each of the two its length.
"""

import json
import re
import struct
from collections.abc import Callable
from io import BufferedIOBase
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

LARGEST = 2**23  # bytes of an answer; an exercise gives a few thousand
DEEPEST = 8  # lists within lists
SENT = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64} | {
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64)
}
HEAD = struct.Struct(">II")


class Broken(Exception):
    """The other side sent something that is no message, or has ended."""


class Packer:
    """Turns values into what a message can hold.

    Args:
        refer: says how the other side finds a value that is no plain data, or gives `None`; of
            such a value only the name of its type is sent.
    """

    def __init__(self, refer: Callable[[Any], Any] = lambda value: None):
        self.refer, self.tensors = refer, {}
        self.differentiable: list[Tensor] = []

    def pack(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON can hold it; its tensors are collected."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray | np.generic):
            return {"array": self._store(_from_numpy(value))}
        if isinstance(value, list | tuple) and depth < DEEPEST:
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.pack(part, depth + 1) for part in value]}
        if isinstance(value, dict) and depth < DEEPEST:
            pairs = [(self.pack(k, depth + 1), self.pack(v, depth + 1)) for k, v in value.items()]
            return {"dict": pairs}
        found = self.refer(value)
        return {"other": type(value).__name__} if found is None else {"found": found}

    def _tensor(self, value: Tensor) -> dict:
        if value.layout != torch.strided or value.device.type != "cpu" or value.dtype not in SENT:
            return {"other": f"tensor_of_{value.dtype}_{value.layout}_{value.device}"}
        if value.requires_grad:
            self.differentiable.append(value)
        return {"tensor": self._store(value), "gradient": value.requires_grad}

    def _store(self, value: Tensor) -> str:
        name = str(len(self.tensors))
        self.tensors[name] = value.detach().clone(memory_format=torch.contiguous_format)
        return name


def _from_numpy(value: Any) -> Tensor:
    try:
        return torch.from_numpy(np.array(value))
    except TypeError:  # of text or of objects
        return torch.empty(0)


class Unpacker:
    """Turns what a message holds into values again.

    Args:
        tensors: the message's tensors.
        find: returns the value that the other side's `refer` spoke of.
    """

    def __init__(self, tensors: dict[str, Tensor], find: Callable[[Any], Any] | None = None):
        self.tensors, self.find = tensors, find
        self.differentiable: list[Tensor] = []

    def unpack(self, packed: Any) -> Any:
        """Return the value.

        Raises:
            Broken: `Packer` packs nothing like this.
        """
        if not isinstance(packed, dict):
            return packed
        try:
            return self._value(*next(iter(packed.items())), packed)
        except (KeyError, TypeError, ValueError, StopIteration, RecursionError) as error:
            raise Broken(f"no value: {error!r}") from error

    def _value(self, kind: str, content: Any, packed: dict) -> Any:
        if kind == "tensor":
            tensor = self.tensors[content]
            if packed["gradient"]:
                self.differentiable.append(tensor)
            return tensor
        if kind == "array":
            return self.tensors[content].numpy()
        if kind in ("list", "tuple"):
            values = [self.unpack(part) for part in content]
            return values if kind == "list" else tuple(values)
        if kind == "dict":
            return {self.unpack(key): self.unpack(value) for key, value in content}
        if kind == "found" and self.find is not None:
            return self.find(content)
        if kind == "other":
            return type(re.sub(r"\W", "_", content)[:80] or "thing", (), {})()
        raise ValueError(kind)


def send(stream: BufferedIOBase, message: dict, tensors: dict[str, Tensor] | None = None) -> None:
    """Write a message."""
    text, blob = json.dumps(message).encode(), save(tensors or {})
    stream.write(HEAD.pack(len(text), len(blob)) + text + blob)
    stream.flush()


def receive(stream: BufferedIOBase, largest: int = LARGEST) -> tuple[dict, dict[str, Tensor]]:
    """Read a message of at most so many bytes, and its tensors.

    Raises:
        Broken: what came is no message, too large, or ended.
    """
    sizes = HEAD.unpack(_read(stream, HEAD.size))
    if sum(sizes) > largest:
        raise Broken(f"a message of {sum(sizes):,} bytes, more than {largest:,}")
    text, blob = (_read(stream, size) for size in sizes)
    try:
        message = json.loads(text)
        if not isinstance(message, dict):
            raise ValueError(type(message).__name__)
        return message, load(blob)
    except (ValueError, RecursionError, SafetensorError) as error:
        raise Broken(f"no message: {error!r}") from error


def _read(stream: BufferedIOBase, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise Broken("it ended")
    return content

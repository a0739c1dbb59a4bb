"""Small folders laid out like Ollama's."""

import hashlib
import json
from pathlib import Path

WEIGHTS = "application/vnd.ollama.image.model"
LIBRARY = "manifests/registry.ollama.ai/library"


def layer(digest: str, kind: str = WEIGHTS) -> dict:
    return {"mediaType": kind, "digest": digest, "size": 1}


def manifest(*layers: dict) -> bytes:
    return json.dumps({"schemaVersion": 2, "layers": list(layers)}).encode()


def put(store: Path, place: str, content: bytes) -> Path:
    path = store / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def add(store: Path, place: str, weights: bytes) -> Path:
    """Store a model's weights, and name them; return the blob."""
    digest = hashlib.sha256(weights).hexdigest()
    others = [layer("sha256:" + "0" * 64, "application/vnd.ollama.image.template")]
    put(store, place, manifest(*others, layer(f"sha256:{digest}")))
    return put(store, f"blobs/sha256-{digest}", weights)

"""Settings of every test run, made before torch and the package are imported."""

import os

# Two workers with several torch threads each fight over the cores; kernels inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")

import jaxtyping  # noqa: E402

# From here on every shape in a signature is checked on every call.
jaxtyping.install_import_hook("transformer_lesson", "beartype.beartype")

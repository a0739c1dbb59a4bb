"""Python runs this at its start where this folder is on PYTHONPATH: in kernels and subprocesses."""

import sys

import noise

if noise.switched_on():
    sys.meta_path.insert(0, noise.AfterTorch())

"""Import what all cases of models need, once for all processes that are made from the one that does so."""

from __future__ import annotations

import importlib.util
import os

from .torchvision_ops import declare_operators

declare_operators()
if importlib.util.find_spec("transformers") is not None:
    from transformers import modeling_outputs, modeling_utils  # noqa: F401
    from transformers.models.auto import configuration_auto, modeling_auto  # noqa: F401
if importlib.util.find_spec("timm") is not None:
    import timm  # noqa: F401


def _warm() -> None:
    """Make Inductor read its patterns and its operators, which takes it as long as a small model's kernels.

    Not where there is a GPU: a process that has used one cannot be copied.
    """
    import torch

    from bridge import offline

    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # the other check uses the GPU
    if torch.cuda.is_available():
        return
    offline.compile_for_gpu(torch.relu, [torch.ones(8)])


_warm()

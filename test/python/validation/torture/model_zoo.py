"""List the architectures of transformers and timm, and small models of them with random weights."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from .model_compiles import Model
from .model_configs import Shrink
from .model_depths import fewer_blocks
from .model_inputs import DOES_NOT_FIT, find_inputs
from .torchvision_ops import declare_operators

#: Parameters of the largest model that is tried.
LARGEST = 60_000_000


def _prepare() -> None:
    """Keep the libraries from looking for anything outside, and from warnings."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.simplefilter("ignore")
    declare_operators()


def architectures() -> list[str]:
    """Return all names, "library/architecture", of the libraries that are installed."""
    _prepare()
    return [*_of_transformers(), *_of_timm()]


def build(name: str, training: bool, seed: int = 0) -> Model:
    """Build a small model in float32; raise one of `model_inputs.DOES_NOT_FIT` for one that no rule fits."""
    _prepare()
    library, _, architecture = name.partition("/")
    torch.manual_seed(seed)
    module, inputs = (_transformer if library == "transformers" else _image_model)(architecture, training)
    _keep_everything(module)
    return Model(module.train(training).requires_grad_(training), inputs, training)


def _keep_everything(module: nn.Module) -> None:
    """Turn off what drops elements or paths in training: no two compilers draw the same numbers."""
    for part in module.modules():
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
        elif isinstance(getattr(part, "drop_prob", None), float):
            part.drop_prob = 0.0


def randomize(model: Model, originals: list[torch.Tensor], seed: int) -> None:
    """Set other weights, in place, of the scales that the originals have, and other inputs."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight, original in zip(model.module.parameters(), originals, strict=True):
            scale = original.float().std() if original.numel() > 1 else torch.tensor(0.0)
            scale = scale if scale > 0 else torch.tensor(0.05)
            weight.copy_(original + 0.5 * scale.to(original) * torch.randn(original.shape).to(original))
        for value in model.inputs.values():
            if value.is_floating_point():
                value.copy_(torch.randn(value.shape))
            elif value.dim() == 2 and int(value.max()) > 1:
                value.copy_(value.flatten()[torch.randperm(value.numel())].view_as(value))


def _of_transformers() -> list[str]:
    if importlib.util.find_spec("transformers") is None:
        return []
    from transformers.models.auto import modeling_auto

    heads = (modeling_auto.MODEL_MAPPING_NAMES, modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    return [f"transformers/{name}" for name in sorted({*heads[0], *heads[1]})]


def _transformer(architecture: str, training: bool) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    last: BaseException = ValueError("no configuration")
    for wide in (False, True):
        try:
            module = _from_small_config(architecture, wide, training)
            return module, find_inputs(module.eval())
        except DOES_NOT_FIT as error:
            last = error
    raise last


def _from_small_config(architecture: str, wide: bool, training: bool) -> nn.Module:
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    transformers.logging.set_verbosity_error()
    config = _small_config(CONFIG_MAPPING[architecture], wide)
    # What a CPU's fused attention saves for the backward is not what a GPU's does.
    if training:
        config._attn_implementation = "eager"
    _without_dropout(config)
    return _limited(lambda: _class_of(architecture)(config))


def _small_config(kind: Any, wide: bool) -> Any:
    """Return the configuration of a small model; raise ValueError for one whose own checks refuse it."""
    from huggingface_hub.errors import StrictDataclassError

    try:
        return kind(**Shrink(wide).values(kind().to_dict()))
    except StrictDataclassError as error:  # it does not survive the way to another process
        raise ValueError(str(error)) from None


def _class_of(architecture: str) -> Callable[[Any], nn.Module]:
    import transformers
    from transformers.models.auto import modeling_auto

    for names in (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_MAPPING_NAMES):
        if architecture in names:
            name = names[architecture]
            return getattr(transformers, name if isinstance(name, str) else name[0])
    raise ValueError(f"no model of {architecture}")


def _without_dropout(config: Any) -> None:
    """Turn off dropout: random numbers are drawn in another order by every compiler."""
    for name, value in vars(config).items():
        if hasattr(value, "to_dict"):
            _without_dropout(value)
        elif isinstance(value, float) and ("drop" in name or name.endswith("pdrop")):
            setattr(config, name, 0.0)


def _limited(make: Callable[[], nn.Module], inside: Callable[[], Any] = contextlib.nullcontext) -> nn.Module:
    """Make the module inside a context; raise ValueError for one that is too large."""
    with torch.device("meta"), inside():
        size = sum(parameter.numel() for parameter in make().parameters())
    if size > LARGEST:
        raise ValueError(f"{size:,} parameters")
    with inside():
        return make()


def _of_timm() -> list[str]:
    if importlib.util.find_spec("timm") is None:
        return []
    return [f"timm/{name}" for name in _smallest_variants()]


@functools.cache
def _smallest_variants() -> tuple[str, ...]:
    """Return, of every family of timm, the two models whose names suggest the smallest sizes."""
    import timm

    families = sorted(timm.list_modules())
    return tuple(name for family in families for name in sorted(timm.list_models(module=family), key=_promise)[:2])


#: In names of timm's models, what says that one is small, the smallest first.
_SIZES = (
    "test_", "atto", "femto", "pico", "nano", "zepto", "xxs", "050", "035", "tiny", "_t", "mini", "xs", "s0", "b0",
    "small", "_s", "18", "10", "14", "26", "base",
)  # fmt: skip


def _promise(name: str) -> tuple[int, int, str]:
    size = next((i for i, part in enumerate(_SIZES) if part in name), len(_SIZES))
    return size, len(name), name


def _image_model(architecture: str, training: bool) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    last: BaseException = ValueError("no size")
    for module, side in _sizes(architecture, training):
        images = torch.randn(2, 3, side, side)
        try:
            with torch.no_grad():
                module.eval()(images)
            return module, {"x": images}
        except DOES_NOT_FIT as error:
            last = error
    raise last


def _sizes(architecture: str, training: bool) -> Iterator[tuple[nn.Module, int]]:
    """Yield the model for small images, for any, for its own; first with fewer blocks, then with all of them."""
    import timm

    timm.layers.set_fused_attn(not training)
    config = timm.models.get_pretrained_cfg(architecture, allow_unregistered=True)
    side = config.input_size[-1] if config is not None else 224
    make = functools.partial(timm.create_model, architecture, num_classes=10)
    with torch.device("meta"):
        kind = type(make())
    few, own = functools.partial(fewer_blocks, kind), contextlib.nullcontext
    for blocks, size, told in itertools.product((few, own), (64, 96, 128, 160, 224), (True, False)):
        values = {"img_size": size} if told else {}
        with contextlib.suppress(*DOES_NOT_FIT):
            yield _limited(functools.partial(make, **values), blocks), size
    yield _limited(make), side

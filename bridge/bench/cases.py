"""For `bridge bench`: one way to run one model, with the call to compile and the state to reset before each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .gpu_measurements import Tensors
from .results import case_name
from .training import Compiler, Step, class_loss, flat, language_loss, square_loss
from .zoo import Architecture

#: What an architecture that this environment's libraries, compilers or GPU cannot run looks like: it is reported, the
#: rest goes on.
FAILURES = (
    AssertionError, AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


def first_line(failure: BaseException) -> str:
    """Return the first line of an exception's message."""
    return (str(failure).strip() or "no message").splitlines()[0]


#: Tokens decoded in a row.
STEPS = 8


@dataclass(frozen=True)
class Sizes:
    """Hold the sizes of the inputs of all models.

    prompt: tokens of a prompt; sequences, encoded: number of sequences for an encoder, and tokens of each; cached,
    cache: tokens in a static cache, and its capacity; images: in a batch, or samples for a diffusion model.
    """

    prompt: int
    sequences: int
    encoded: int
    cached: int
    cache: int
    images: int


FULL = Sizes(2048, 4, 512, 1000, 1024, 64)
SMALL = Sizes(32, 2, 16, 8, 16, 2)


def _nothing() -> None:
    return None


def _as_it_is(result: Any) -> Any:
    return result


@dataclass
class Case:
    """Hold what is measured: `call` takes `inputs` and gives logits (or hidden states, or noise).

    tensors: finds the tensors in what `call` gives; steps: how often it may be called before `rewind` has to undo what
    the calls left; between: to be called before each of these calls; assemble: returns `call` with its parts compiled,
    where it is not compiled as a whole.
    """

    model: str
    mode: str
    batch: int
    call: Callable[..., torch.Tensor]
    inputs: list[torch.Tensor]
    rewind: Callable[[], None] = _nothing
    between: Callable[[], None] = _nothing
    steps: int = 1
    tensors: Callable[[Any], Tensors] = _as_it_is
    assemble: Callable[[Compiler], Callable] | None = None

    def compiled(self, compiler: Compiler) -> Callable:
        """Return the call, compiled."""
        return compiler(self.call) if self.assemble is None else self.assemble(compiler)

    @property
    def name(self) -> str:
        """Return the model's name, the mode and, for decoding, the batch."""
        return case_name(self.model, self.mode, self.batch)

    def run(self, call: Callable[..., torch.Tensor] | None = None) -> torch.Tensor:
        """Return the result of the first step; `call` takes the place of the case's own call."""
        self.rewind()
        return (call or self.call)(*self.inputs)

    def run_steps(self, call: Callable[..., torch.Tensor]) -> torch.Tensor:
        """Return the result of the last of all steps; the case has to be rewound before."""
        for _ in range(self.steps):
            self.between()
            result = call(*self.inputs)
        return result


def make_case(
    architecture: Architecture, module: nn.Module, mode: str, batch: int | None = None, sizes: Sizes = FULL
) -> Case:
    """Return the case of a module that `architecture.build` made; batch: sequences decoded together (default: 1)."""
    if mode == "training":
        return _training(architecture, module, sizes)
    make = {
        "decoder": _decode if mode == "decode" else _prefill,
        "recurrent": _prefill,
        "encoder": _encode,
        "image": _classify,
        "diffusion": _denoise,
    }[architecture.kind]
    call, inputs, *state = make(module, batch or 1, sizes)
    return Case(architecture.name, mode, inputs[0].shape[0], call, inputs, *state)


def _training(architecture: Architecture, module: nn.Module, sizes: Sizes) -> Case:
    loss, inputs = _loss(architecture.kind, module, sizes)
    step = Step(module, loss)
    call = step.assemble(_as_it_is)
    return Case(
        architecture.name, "training", inputs[0].shape[0], call, inputs, step.rewind, tensors=flat,
        assemble=step.assemble,
    )  # fmt: skip


def _loss(kind: str, module: nn.Module, sizes: Sizes) -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    """Return the loss of a kind of model, and its inputs."""
    if kind == "decoder":
        return language_loss(module), [_tokens(module, sizes.sequences, sizes.encoded)]
    if kind == "image":
        call, inputs = _classify(module, 1, sizes)
        return class_loss(call), inputs
    call, inputs = (_encode if kind == "encoder" else _denoise)(module, 1, sizes)
    return square_loss(call), inputs


def _tokens(module: nn.Module, batch: int, length: int) -> torch.Tensor:
    device = next(module.parameters()).device
    generator = torch.Generator("cpu").manual_seed(1)
    vocabulary = module.config.vocab_size
    return torch.randint(3, vocabulary, (batch, length), generator=generator).to(device)


def _prefill(module: nn.Module, batch: int, sizes: Sizes) -> tuple:
    """Return a call for the next token's logits after a prompt, with a cache, and its inputs.

    Without one, transformers would look for several sequences packed into one, and mask them.
    """

    def prefill(ids: torch.Tensor) -> torch.Tensor:
        return module(input_ids=ids, use_cache=True, logits_to_keep=1).logits

    return prefill, [_tokens(module, batch, sizes.prompt)]


def _decode(module: nn.Module, batch: int, sizes: Sizes) -> tuple:
    """Decode one token more, with a static cache that a prompt has filled."""
    from transformers import StaticCache  # weight: an optional package

    cache = StaticCache(config=module.config, max_cache_len=sizes.cache)
    prompt = _tokens(module, batch, sizes.cached)
    with torch.no_grad():
        module(input_ids=prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)

    def decode(ids: torch.Tensor) -> torch.Tensor:
        return module(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits

    return decode, [prompt[:, :1].clone()], *_rewinders(list(cache.layers)), STEPS


def _rewinders(layers: list[object]) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return (rewind all of the cache's state, restore the numbers that Python counts); keys and values stay.

    A number that Python counts would be another at the second call, and Dynamo compile it anew.
    """
    numbers = [(layer, k, v) for layer in layers for k, v in vars(layer).items() if type(v) in (int, bool)]
    tensors = [(t, t.clone()) for layer in layers for t in _counters(layer)]

    def restore_numbers() -> None:
        for layer, name, value in numbers:
            setattr(layer, name, value)

    def rewind() -> None:
        restore_numbers()
        for tensor, value in tensors:
            tensor.copy_(value)

    return rewind, restore_numbers


def _counters(layer: object) -> Iterator[torch.Tensor]:
    for value in vars(layer).values():
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            yield value


def _encode(module: nn.Module, batch: int, sizes: Sizes) -> tuple:
    def encode(ids: torch.Tensor) -> torch.Tensor:
        return module(input_ids=ids).last_hidden_state

    return encode, [_tokens(module, sizes.sequences, sizes.encoded)]


def _classify(module: nn.Module, batch: int, sizes: Sizes) -> tuple:
    def classify(pixels: torch.Tensor) -> torch.Tensor:
        result = module(pixels)
        return result if isinstance(result, torch.Tensor) else result.logits

    return classify, [_noise(module, _image_shape(module, sizes))]


def _image_shape(module: nn.Module, sizes: Sizes) -> tuple[int, int, int, int]:
    patches = getattr(module, "patch_embed", None) or getattr(module, "stem", None)  # of timm
    image = getattr(patches, "img_size", None)
    if image is not None:
        return sizes.images, 3, *image
    if hasattr(module, "pretrained_cfg"):
        return sizes.images, *module.pretrained_cfg["input_size"]
    return sizes.images, 3, *_sides(module.config)


def _sides(config: Any) -> tuple[int, int]:
    """Return (height, width) of the images that a model of transformers is made for: one number, or two."""
    size = config.image_size if hasattr(config, "image_size") else config.vision_config.image_size
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def _noise(module: nn.Module, shape: tuple[int, ...]) -> torch.Tensor:
    generator = torch.Generator("cpu").manual_seed(1)
    first = next(module.parameters())
    return torch.randn(shape, generator=generator).to(first.device, first.dtype)


def _denoise(module: nn.Module, batch: int, sizes: Sizes) -> tuple:
    latents = _noise(module, (sizes.images, module.channels, module.size, module.size))
    steps = torch.arange(sizes.images, device=latents.device) * (1000 // sizes.images)
    return module.forward, [latents, steps]

"""Test a step of training, as `bridge bench` runs it: what it returns, undoes and compiles."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bridge.bench.cases import SMALL, make_case
from bridge.bench.training import LEARNING_RATE, Step, class_loss, flat, language_loss, square_loss
from bridge.bench.zoo import Architecture


class Scaled(nn.Module):
    """Hold one weight for each of two columns, and one that no result depends on."""

    def __init__(self):
        super().__init__()
        self.scale, self.unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_a_step_gives_the_loss_and_the_gradients_and_moves_the_weights():
    module = Scaled()
    loss, gradient = Step(module, square_loss(module)).assemble(lambda call: call)(X)
    assert loss.item() == 7.5 and torch.equal(gradient, torch.tensor([5.0, 10.0]))
    assert torch.allclose(module.scale, torch.tensor(1 - LEARNING_RATE)) and torch.equal(module.unused, torch.ones(3))
    assert module.training and module.scale.grad is None


def test_rewinding_makes_the_next_step_the_first():
    module = nn.Sequential(Scaled(), nn.Dropout(0.5))
    step = Step(module, square_loss(module))
    call = step.assemble(lambda call: call)
    step.rewind()
    first, weights = call(X), [weight.clone() for weight in module.parameters()]
    assert not all(map(torch.equal, first, call(X)))
    step.rewind()
    assert torch.equal(module[0].scale, torch.ones(2))
    assert all(map(torch.equal, first, call(X))) and all(map(torch.equal, weights, module.parameters()))


def test_loss_and_update_are_compiled_and_autograd_is_not():
    compiled = []

    def compiler(call):
        compiled.append(call)
        return call

    module = Scaled()
    Step(module, square_loss(module)).assemble(compiler)(X)
    assert len(compiled) == 2


def test_gradients_have_one_error():
    loss, gradients = flat([torch.tensor(1.0), torch.ones(2, 3), torch.zeros(4)])
    assert loss == 1 and gradients.tolist() == [1.0] * 6 + [0.0] * 4


def test_losses_are_those_of_their_models():
    logits = torch.randn(3, 5)
    first = torch.zeros(3, dtype=torch.int64)
    assert class_loss(lambda pixels: logits)(X) == nn.functional.cross_entropy(logits, first)
    ids = torch.tensor([[0, 1, 2]])

    class Model(nn.Module):
        def forward(self, input_ids, use_cache):
            assert not use_cache
            self.logits = nn.functional.one_hot((input_ids + 1) % 3, 3) * 50.0
            return self

    assert language_loss(Model())(ids) < 1e-6 < language_loss(Model())(ids.flip(1))


@pytest.mark.parametrize("kind", ["image", "diffusion"])
def test_each_kind_has_a_case(kind):
    class Model(Scaled):
        channels, size = 3, 2
        patch_embed = torch.nn.Identity()
        patch_embed.img_size = (2, 2)

        def forward(self, pixels, steps=None):
            return super().forward(pixels).flatten(1)

    architecture = Architecture("scaled", kind, "torch", Model)
    case = make_case(architecture, architecture.build(torch.float32, "cpu"), "training", sizes=SMALL)
    loss, gradients = case.tensors(case.run(case.compiled(lambda call: call)))
    assert case.name == "scaled training" and loss.ndim == 0 and gradients.abs().sum() > 0

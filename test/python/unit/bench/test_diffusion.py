"""Test the diffusion transformer that `bridge bench` runs."""

from __future__ import annotations

import torch

from bridge.bench.diffusion import FREQUENCIES, Block, DiffusionTransformer, embed_time, modulate


def test_a_condition_is_the_same_for_all_tokens():
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    result = modulate(x, shift=torch.tensor([[10.0, 20.0]]), scale=torch.tensor([[0.0, 1.0]]))
    assert result.tolist() == [[[11.0, 24.0], [13.0, 28.0]]]


def test_time_steps_become_cosines_then_sines():
    embedded = embed_time(torch.tensor([0, 1]), torch.float64)
    assert embedded.shape == (2, FREQUENCIES) and embedded.dtype == torch.float64
    half = FREQUENCIES // 2
    assert embedded[0].tolist() == [1.0] * half + [0.0] * half
    torch.testing.assert_close(embedded[1, [0, half]].float(), torch.tensor([0.5403023, 0.8414710]))


def test_a_block_with_closed_gates_changes_nothing():
    torch.manual_seed(0)
    block = Block(width=8, heads=2)
    x, condition = torch.randn(2, 3, 8), torch.randn(2, 8)
    assert not torch.equal(block(x, condition), x)
    torch.nn.init.zeros_(block.condition.weight)
    torch.nn.init.zeros_(block.condition.bias)
    assert torch.equal(block(x, condition), x)


def test_tokens_go_back_to_their_places_in_the_image():
    model = DiffusionTransformer(size=4, patch=2, channels=1, width=8, heads=2, depth=0)
    image = model.unpatchify(torch.arange(16.0).reshape(1, 4, 4))
    assert image.tolist() == [[[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]]]


def test_noise_has_the_shape_of_the_latents():
    model = DiffusionTransformer(size=8, patch=2, channels=4, width=16, heads=2, depth=1)
    latents = torch.randn(3, 4, 8, 8)
    assert model(latents, torch.tensor([0, 10, 999])).shape == latents.shape

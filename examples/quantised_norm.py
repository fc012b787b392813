"""RMSNorm, then int8 with a scale for each row: a reduction, a second one of its results, and the quantisation.

Bridge's decisions can be read in the report; strict mode raises where an invariant of Bridge's own is broken.
"""

import torch

import bridge


def quantised_norm(x, weight):
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    gate, up = normed.chunk(2, dim=-1)
    product = torch.sigmoid(gate) * up
    scale = product.abs().amax(-1, keepdim=True) / 127.0
    return (product / scale).round().to(torch.int8), scale


def main():
    inputs = [torch.randn(256, 2048), torch.randn(2048)]
    with torch.no_grad(), bridge.config.patch(strict=True):
        codes, scale = torch.compile(quantised_norm, backend="bridge")(*inputs)
    expected, expected_scale = quantised_norm(*inputs)
    torch.testing.assert_close(scale, expected_scale)
    # A value that is half-way between two codes may go to either.
    assert (codes.int() - expected.int()).abs().max() <= 1
    print(bridge.report())


if __name__ == "__main__":
    main()

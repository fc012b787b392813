"""DeepSeek's indexer: LayerNorm over a row of keys, rotary embedding on its first part, the rest as it is.

The extents, 64 and 320 of 384, do not divide each other: lanes that a part does not have are guarded.
`bridge.expect_fused` is what a test of your own would use.
"""

import torch
import torch.nn.functional as F

import bridge


def indexer(k, weight, bias, cos, sin):
    normed = F.layer_norm(k, (k.shape[-1],), weight, bias)
    position, rest = normed.split([cos.shape[-1], k.shape[-1] - cos.shape[-1]], dim=-1)
    first, second = position.chunk(2, dim=-1)
    return position * cos + torch.cat([-second, first], dim=-1) * sin, rest


def main():
    inputs = [torch.randn(128, 384), *torch.randn(2, 384), *torch.randn(2, 128, 64)]
    with torch.no_grad(), bridge.expect_fused(n_kernels=1, backend_target="cuda:sm_90"):
        result = torch.compile(indexer)(*inputs)
    for mine, reference in zip(result, indexer(*inputs)):
        torch.testing.assert_close(mine, reference)
    print(bridge.report())


if __name__ == "__main__":
    main()

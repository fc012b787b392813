"""RMSNorm, then SwiGLU over the two halves of the row: two kernels with Inductor, one with Bridge.

Shows `bridge.explain`, for a GPU that need not be there, and `backend="bridge"` on this machine's CPU.
"""

import torch
import torch.nn.functional as F

import bridge


def swiglu(x, weight):
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    gate, up = normed.chunk(2, dim=-1)
    return F.silu(gate) * up


def main():
    x, weight = torch.randn(256, 2048), torch.randn(2048)
    print(bridge.explain(swiglu, x, weight, backend_target="cuda:sm_90"))
    with torch.no_grad():
        compiled = torch.compile(swiglu, backend="bridge")
        torch.testing.assert_close(compiled(x, weight), swiglu(x, weight))


if __name__ == "__main__":
    main()

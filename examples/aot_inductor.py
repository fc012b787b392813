"""Deployment with AOTInductor: the package that is loaded again has Bridge's kernels, and needs no Bridge."""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

import bridge


class GatedNorm(torch.nn.Module):
    def forward(self, x):
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        gate, up = normed.chunk(2, dim=-1)
        return F.silu(gate) * up


def main():
    model, x = GatedNorm(), torch.randn(64, 1024)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        exported = torch.export.export(model, (x,))
        with bridge.enabled() as report:
            path = torch._inductor.aoti_compile_and_package(exported, package_path=str(Path(folder, "model.pt2")))
        print(report)
        assert report.fused
        torch.testing.assert_close(torch._inductor.aoti_load_package(path)(x), model(x))


if __name__ == "__main__":
    main()

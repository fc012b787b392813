"""Norms of query and key heads with rotary embedding: Qwen3's attention, before the attention.

Query and key heads have nothing in common but their rows: they share a launch. The report is written as HTML.
"""

import sys
from pathlib import Path

import torch

import bridge


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rope(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def qk_norm_rope(q, k, q_weight, k_weight, cos, sin):
    return rope(rms_norm(q, q_weight), cos, sin), rope(rms_norm(k, k_weight), cos, sin)


def main(report: str = "qk_norm_rope.html"):
    q, k = torch.randn(64, 16, 128), torch.randn(64, 4, 128)
    cos, sin = torch.randn(2, 64, 1, 128)
    explanation = bridge.explain(qk_norm_rope, q, k, *torch.randn(2, 128), cos, sin, registers=False)
    print(explanation)
    print("written:", explanation.save_html(Path(report)))
    assert explanation.kernels_after < explanation.kernels_before


if __name__ == "__main__":
    main(*sys.argv[1:])

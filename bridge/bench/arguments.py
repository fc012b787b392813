"""For `bridge bench`: its arguments; without torch, so that `bridge --help` is quick."""

from __future__ import annotations

import argparse
from pathlib import Path

#: Ways to run a model: a prompt, one token after a prompt, images; a step of training.
MODES = ("prefill", "decode", "vision", "training")

#: What weights may be made of.
DTYPES = ("bfloat16", "float16", "float32")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bridge bench` to a parser."""
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="models with such a part in their name")
    parser.add_argument(
        "--architectures", nargs="+", default=[], metavar="NAME",
        help="instead of the zoo: timm/MODEL, or transformers/STEM:HEAD with its default configuration and two layers",
    )  # fmt: skip
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16], help="sequences that are decoded together")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the weights (default: %(default)s)")
    parser.add_argument(
        "--tokens", type=int, default=2048,
        help="of a prompt, or of four sequences in training and for encoders (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--images", type=int, default=64, help="of a batch, or samples to denoise (default: %(default)s)"
    )
    parser.add_argument("--max-autotune", action="store_true", help="with templates for matrix products, tuned")
    parser.add_argument("--dynamic", action="store_true", help="with sizes that are symbols, as of torch.compile")
    parser.add_argument("--compiles", type=int, default=1, help="compilations of each case (default: %(default)s)")
    parser.add_argument("--budget-seconds", type=float, help="begin no case that might not end in this time")
    parser.add_argument(
        "--side-by-side", type=int, default=1, metavar="N", help="processes that compile at once; times are taken apart"
    )
    parser.add_argument("--out", type=Path, help="folder for models.md, models.json and models.svg")
    parser.add_argument("--compare", type=Path, metavar="JSON", help="fail where a model is slower than it was there")
    parser.add_argument("--list", action="store_true", help="say what would be measured, and stop")
    parser.add_argument(
        "--findings", type=Path, metavar="MARKDOWN", help="no GPU, no times: launches, and what stays apart and why"
    )
    parser.add_argument("--small", action="store_true", help="the small configurations, with few tokens and images")
    _add_corpus(parser)


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("patterns of a public corpus (see docs/results/corpus.md)")
    group.add_argument("--corpus", type=Path, metavar="FOLDER", help="a checkout of eellison/better-benchmark")
    group.add_argument("--offline", action="store_true", help="only compile, as on a machine without a GPU")
    group.add_argument("--shard", default="0/1", metavar="K/N", help="every N-th pattern, from the K-th on")
    group.add_argument("--minutes", type=float, default=float("inf"), help="begin no pattern after this time")
    group.add_argument("--workers", type=int, help="processes that compile (default: one a core)")

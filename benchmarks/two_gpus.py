"""Run programs of two ranks, with Inductor and with Bridge: collectives, errors, times.

python benchmarks/two_gpus.py [part of a name ...]     # two GPUs and NCCL; without GPUs, two processes and gloo

Errors are the largest of all results, against float64 in one process.  The compilers alternate; in training, where a
model holds the code of one, Inductor's rounds come first.
"""

from __future__ import annotations

import argparse
import copy
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code
from torch.distributed import _functional_collectives as collectives
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from bridge.backend import bridge
from bridge.reports import bugs, report

RANKS = 2
ROUNDS, REPLAYS = 15, 4
COMPILERS = ("inductor", "bridge")

#: A collective or its wait, in the code that Inductor writes.
CALL = re.compile(r"_c10d_functional\.(\w+)\.default\(")


@dataclass(frozen=True)
class Sizes:
    tokens: int
    width: int
    hidden: int
    layers: int


GPU, CPU = Sizes(4096, 4096, 8192, 4), Sizes(64, 64, 128, 2)


class Block(nn.Module):
    """Compute a gated layer after a norm, its residual kept."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.rms_norm(x.float(), x.shape[-1:]).to(x.dtype) * self.weight
        first, second = y.chunk(2, -1)
        y = torch.cat((second * torch.sigmoid(first), first * torch.sigmoid(second)), -1)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Blocks(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.blocks = nn.ModuleList(Block(sizes.width, sizes.hidden) for _ in range(sizes.layers))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


@dataclass
class Program:
    """Hold what runs, its inputs on this rank, and what float64 has without communication.

    compile_model: where the call itself is not compiled but a model in it, takes the compiler of that.
    """

    call: Callable[..., list[Tensor]]
    inputs: list[Tensor]
    exact: list[Tensor]
    compile_model: Callable[[Callable], None] | None = None


def _model(sizes: Sizes) -> Blocks:
    torch.manual_seed(0)
    return Blocks(sizes)


def _batches(sizes: Sizes) -> Tensor:
    return torch.randn(RANKS, sizes.tokens, sizes.width, generator=torch.Generator().manual_seed(1))


def _placed(module: nn.Module, device: torch.device, dtype: torch.dtype) -> nn.Module:
    return copy.deepcopy(module).to(device, dtype)


def tensor_parallel(sizes: Sizes, device: torch.device, dtype: torch.dtype, mesh: DeviceMesh) -> Program:
    """Columns of `gate` and `up` and rows of `down` on each rank; an all-reduce follows `down`."""
    model, x = _model(sizes), _batches(sizes)[0].to(device, dtype)
    exact = _placed(model, device, torch.float64)(x.double())
    sharded = _placed(model, device, dtype)
    for block in sharded.blocks:
        plan = {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
        parallelize_module(block, mesh, plan)
    return Program(lambda x: [sharded(x)], [x], [exact])


def sequence_parallel(sizes: Sizes, device: torch.device, dtype: torch.dtype, mesh: DeviceMesh) -> Program:
    """Give each rank half of the tokens between the layers: a gather before `gate` and `up`, a scatter after `down`."""
    model, x = _model(sizes), _batches(sizes)[0].to(device, dtype)
    exact = _placed(model, device, torch.float64)(x.double()).chunk(RANKS)[dist.get_rank()]
    sharded = _placed(model, device, dtype)
    for block in sharded.blocks:
        columns = ColwiseParallel(input_layouts=Shard(0))
        plan = {"gate": columns, "up": columns, "down": RowwiseParallel(output_layouts=Shard(0))}
        parallelize_module(block, mesh, plan)
    return Program(lambda x: [sharded(x)], [x.chunk(RANKS)[dist.get_rank()].clone()], [exact])


def quantised_gather(sizes: Sizes, device: torch.device, dtype: torch.dtype, mesh: DeviceMesh) -> Program:
    """Add up the ranks, take the norm in 8 bits, and gather the rows of both ranks."""

    def call(x: Tensor, residual: Tensor) -> list[Tensor]:
        total = residual + collectives.all_reduce(x, "sum", mesh)
        first, second = F.rms_norm(total.float(), total.shape[-1:]).to(total.dtype).chunk(2, -1)
        gated = F.silu(first) * second
        scale = gated.abs().amax(-1, keepdim=True).float() / 127
        rows = torch.round(gated / scale).to(torch.int8)
        return [total, collectives.all_gather_tensor(rows, 0, mesh).float(), scale]

    x, residual = (_batches(sizes).to(device, dtype)[rank] for rank in (dist.get_rank(), 0))
    both = _batches(sizes).to(device, dtype).double()
    total = both.sum(0) + residual.double()
    first, second = F.rms_norm(total, total.shape[-1:]).chunk(2, -1)
    gated = F.silu(first) * second
    scale = gated.abs().amax(-1, keepdim=True) / 127
    return Program(call, [x, residual], [total, torch.round(gated / scale).repeat(RANKS, 1), scale])


def _trained(wrap: Callable[[nn.Module], nn.Module], sizes: Sizes, device: torch.device, dtype: torch.dtype) -> Program:
    """Gradients of a mean over all ranks' tokens, which float64 has from both batches one after the other."""
    model, batches = _model(sizes), _batches(sizes).to(device, dtype)
    exact = _placed(model, device, torch.float64)
    for batch in batches.double():
        (exact(batch).square().mean() / RANKS).backward()
    wrapped = wrap(_placed(model, device, dtype))
    holder: list[Callable] = [wrapped]

    def call(x: Tensor) -> list[Tensor]:
        wrapped.zero_grad()
        holder[0](x).float().square().mean().backward()
        gradients = (p.grad for p in wrapped.parameters())
        return [g.full_tensor() if hasattr(g, "full_tensor") else g for g in gradients if g is not None]

    def use(compiler: Callable) -> None:
        holder[0] = compiler(wrapped)

    gradients = [p.grad for p in exact.parameters() if p.grad is not None]
    return Program(call, [batches[dist.get_rank()]], gradients, use)


def data_parallel(sizes: Sizes, device: torch.device, dtype: torch.dtype, mesh: DeviceMesh) -> Program:
    ids = [device.index] if device.type == "cuda" else None
    return _trained(lambda module: DistributedDataParallel(module, device_ids=ids), sizes, device, dtype)


def fully_sharded(sizes: Sizes, device: torch.device, dtype: torch.dtype, mesh: DeviceMesh) -> Program:
    def wrap(module: nn.Module) -> nn.Module:
        for block in module.blocks:
            fully_shard(block, mesh=mesh)
        return fully_shard(module, mesh=mesh)

    return _trained(wrap, sizes, device, dtype)


PROGRAMS = {
    "tensor parallel": tensor_parallel,
    "sequence parallel": sequence_parallel,
    "all-reduce, norm, int8, all-gather": quantised_gather,
    "training, DDP": data_parallel,
    "training, FSDP2": fully_sharded,
}


def _compiler(name: str) -> Callable[[Callable], Callable]:
    return lambda call: torch.compile(call, backend=bridge if name == "bridge" else "inductor")


@dataclass
class Compiled:
    """Hold one compiler's: what runs, its error, its collectives in order, its kernels and Bridge's groups."""

    run: Callable[[], object]
    error: float
    order: list[str]
    kernels: int
    groups: int


def _error(results: list[Tensor], exact: list[Tensor]) -> float:
    pairs = zip(results, exact, strict=True)
    return max(((one.double() - other).norm() / other.norm()).item() for one, other in pairs)


def _compile(program: Program, name: str) -> Compiled:
    torch._dynamo.reset()
    training = program.compile_model is not None
    if program.compile_model is not None:
        program.compile_model(_compiler(name))
    call = program.call if training else _compiler(name)(program.call)
    with torch.set_grad_enabled(training):
        results, codes = run_and_get_code(call, *program.inputs)
    text = "\n".join(codes)
    last = report() if name == "bridge" else None
    kernels = len(re.findall(r"\.run\(|cpp_fused_?\w*\(", text))

    def run() -> object:
        with torch.set_grad_enabled(training):
            return call(*program.inputs)

    return Compiled(run, _error(results, program.exact), CALL.findall(text), kernels, len(last.fused) if last else 0)


def _seconds(compiled: Compiled, device: torch.device) -> float:
    """Return how long one run takes where both ranks begin together."""
    dist.barrier()
    if device.type == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(REPLAYS):
        compiled.run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / REPLAYS


def _measure(name: str, program: Program, device: torch.device) -> str:
    made: dict[str, Compiled] = {}
    times: dict[str, list[float]] = {compiler: [] for compiler in COMPILERS}
    for compiler in COMPILERS:
        made[compiler] = _compile(program, compiler)
        if program.compile_model is not None:  # a model holds one compiler's code at a time
            times[compiler] = [_seconds(made[compiler], device) for _ in range(ROUNDS)]
    for _ in range(0 if program.compile_model is not None else ROUNDS):
        for compiler in COMPILERS:
            times[compiler].append(_seconds(made[compiler], device))
    return _line(name, made, {compiler: statistics.median(times[compiler]) * 1e6 for compiler in COMPILERS})


def _line(name: str, made: dict[str, Compiled], us: dict[str, float]) -> str:
    before, after = (made[compiler] for compiler in COMPILERS)
    order = f"{len(after.order)}, " + ("the same order" if before.order == after.order else "ANOTHER ORDER")
    cells = [
        name,
        f"{before.kernels} -> {after.kernels}",
        str(after.groups),
        order,
        f"{us['inductor']:.0f} -> {us['bridge']:.0f}",
        f"{us['bridge'] / us['inductor']:.3f}",
        f"{before.error:.2e}",
        f"{after.error:.2e}",
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = "| program | kernels | groups | collectives | us | ratio | error, Inductor | error, Bridge |\n|" + "---|" * 8


def _rank(rank: int, store: str, only: list[str]) -> None:
    cuda = torch.cuda.device_count() >= RANKS
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    mesh = init_device_mesh(device.type, (RANKS,))
    sizes, dtype = (GPU, torch.bfloat16) if cuda else (CPU, torch.float32)
    if rank == 0:
        print(HEAD, flush=True)
    for name, make in PROGRAMS.items():
        if not only or any(part in name for part in only):
            line = _measure(name, make(sizes, device, dtype, mesh), device)
            if rank == 0:
                print(line, flush=True)
    dist.barrier()
    dist.destroy_process_group()
    if bugs():
        sys.exit("\n".join(bugs()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="parts of the names of programs; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (str(Path(folder) / "store"), options.only), RANKS)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""torch.distributed's powerSGD_hook on two gloo ranks: powersgd_hook.py IN.safetensors OUT.safetensors

IN: rank0, rank1 [steps, rows, columns], the gradients of each step; q [columns, rank], the factor to
begin with. OUT: mean [steps, rows, columns], what the hook makes of them.
"""
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from safetensors.torch import load_file, save_file
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd

WARM_UP = 2  # steps that the hook leaves alone: torch wants at least two


class Plain(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(shape))

    def forward(self, gradient):
        return (self.weight * gradient).sum()


def run(rank, port, source, target):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    data = load_file(source)
    mine, q = data[f"rank{rank}"], data["q"]
    model = torch.nn.parallel.DistributedDataParallel(Plain(mine.shape[1:]))
    state = powersgd.PowerSGDState(
        None, matrix_approximation_rank=q.shape[1], start_powerSGD_iter=WARM_UP,
        min_compression_rate=1, use_error_feedback=True, warm_start=True)
    state.q_memory_dict[0] = q.flatten().clone()
    state.p_memory_dict[0] = torch.empty(mine.shape[1] * q.shape[1])
    model.register_comm_hook(state, powersgd.powerSGD_hook)
    means = []
    for step in range(-WARM_UP, mine.shape[0]):
        model.zero_grad()
        model(mine[max(step, 0)]).backward()
        if step >= 0:
            means.append(model.module.weight.grad.clone())
    if rank == 0:
        save_file({"mean": torch.stack(means)}, target)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    processes.spawn(run, (free, sys.argv[1], sys.argv[2]), nprocs=2)

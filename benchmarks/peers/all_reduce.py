#!/usr/bin/env python3
"""Sums over the ranks of a machine by torch.distributed's Gloo: a peer of benchmarks/all_reduce,
timed as that is. Prints one line of JSON with the median of each size.

    torchrun --nproc-per-node 2 all_reduce.py [--dtype fp32|bf16] [--seconds 1] [--kilobytes 4,64]

A call begins after a barrier and takes as long as on the slowest rank.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist

from timing import DTYPES, machine, quartiles

KILOBYTES = "4,64,1024,16384,65536,262144"


def timed_call(tensor):
    dist.barrier()
    start = time.perf_counter()
    dist.all_reduce(tensor)
    took = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def measure(count, dtype, seconds):
    tensor = torch.zeros(count // dtype.itemsize, dtype=dtype)
    first = max(timed_call(tensor) for _ in range(3))
    calls = max(5, min(500, int(seconds / first)))
    low, median, high = quartiles([timed_call(tensor) for _ in range(calls)])
    return dict(bytes=count, median_us=1e6 * median, quartiles_us=[1e6 * low, 1e6 * high],
                gb_per_s=count / median / 1e9)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtype", choices=list(DTYPES), default="fp32")
    p.add_argument("--seconds", type=float, default=1, help="for each size, about")
    p.add_argument("--kilobytes", default=KILOBYTES)
    options = p.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    sizes = [measure(int(k) << 10, DTYPES[options.dtype], options.seconds)
             for k in options.kilobytes.split(",")]
    if dist.get_rank() == 0:
        print(json.dumps(dict(workload="all-reduce", peer="gloo", precision=options.dtype,
                              world=dist.get_world_size(), sizes=sizes, **machine())), flush=True)
    dist.destroy_process_group()


main()

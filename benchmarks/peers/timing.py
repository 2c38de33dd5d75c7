"""What the PyTorch peers share: the words of their command lines, ranks, the time of a step, and
the line of JSON in which it is told.

The words are those of lockstep's own step programs (benchmarks/step_run.h), and so are the names in
the line, as far as both have them. With several ranks each process finds itself in the environment,
as torchrun writes it.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import platform
import resource
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclasses.dataclass
class Ranks:
    number: int = 0
    size: int = 1


def parser(description):
    out = argparse.ArgumentParser(description=description,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--dtype", "--precision", choices=list(DTYPES), default="bf16")
    out.add_argument("--threads", type=int, default=1, help="of each rank")
    out.add_argument("--steps", type=int, default=8, help="that are timed")
    out.add_argument("--warmup", type=int, default=4, help="steps before them")
    out.add_argument("--compile", action="store_true", help="torch.compile the network")
    return out


def begin(options):
    torch.set_num_threads(options.threads)
    ranks = Ranks(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
    if ranks.size > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(1)  # the same first weights on every rank
    return ranks


def wrap(options, ranks, network, lengths_vary=False):
    """The network over all ranks, and compiled if that is asked for."""
    if ranks.size > 1:
        # Gradients stay in the buckets and no step looks for unused ones: DDP's fastest way.
        network = DistributedDataParallel(network, gradient_as_bucket_view=True, static_graph=True)
    if options.compile:
        network = torch.compile(network, dynamic=True if lengths_vary else None)
    return network.train()


def autocast(options):
    if options.dtype == "fp32":
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=DTYPES[options.dtype])


@dataclasses.dataclass
class Batch:
    data: tuple
    samples: int
    tokens: int = 0  # none for images


def time_steps(options, ranks, workload, make_batch, train_step, **more):
    """Prints the line of JSON on rank 0. make_batch(step) is not timed; train_step(*data) is: it
    returns the loss, which is read inside of the time."""
    seconds, samples, tokens = [], 0, 0
    for step in range(options.warmup + options.steps):
        batch = make_batch(step)
        if ranks.size > 1:
            dist.barrier()
        start = time.perf_counter()
        loss = train_step(*batch.data).item()
        took = time.perf_counter() - start
        if step == 0:
            first_step = time.time() - process_start()
        if step >= options.warmup:
            seconds.append(took)
            samples += batch.samples
            tokens += batch.tokens
    if ranks.size > 1:
        counts = torch.tensor([samples, tokens])
        dist.all_reduce(counts)
        samples, tokens = counts.tolist()
        dist.destroy_process_group()
    if ranks.number > 0:
        return
    out = dict(workload=workload, peer="torch", precision=options.dtype, world=ranks.size,
               threads=options.threads, steps=options.steps, compiled=options.compile)
    out.update(step_figures(seconds))
    out["samples_per_s"] = samples / sum(seconds)
    if tokens:
        out["tokens_per_s"] = tokens / sum(seconds)
    out.update(peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
               process_to_first_step_s=round(first_step, 2), loss=loss, **machine(), **more)
    print(json.dumps(out), flush=True)


def step_figures(seconds):
    low, median, high = quartiles(seconds)
    return dict(median_step_s=median, quartiles_step_s=[low, high], min_step_s=min(seconds))


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def machine():
    return dict(torch=torch.__version__, processor=processor_name())


def processor_name():
    """With what it has for bf16, for virtual machines often say no more than the maker."""
    facts = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    flags = [f for f in ("avx512_bf16", "amx_bf16") if f in facts.get("flags", "").split()]
    return f"{name} ({', '.join(flags or ['no bf16 products'])})"


def process_start():  # of this process, on the wall clock (field 22 of /proc/self/stat)
    with open("/proc/self/stat", encoding="utf-8") as stat, open("/proc/uptime") as uptime:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
        return time.time() - float(uptime.read().split()[0]) + ticks / os.sysconf("SC_CLK_TCK")

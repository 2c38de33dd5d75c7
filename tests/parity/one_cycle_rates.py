"""Prints learning rate and momentum of each step of torch's OneCycleLR, one step a line.

Usage: one_cycle_rates.py TOTAL_STEPS PCT_START ANNEAL THREE_PHASE
"""
import sys

import torch

total, start, anneal, three_phase = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
schedule = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.5, total_steps=total, pct_start=start, anneal_strategy=anneal,
    three_phase=three_phase == "yes")
for _ in range(total):
    group = optimizer.param_groups[0]
    print(repr(group["lr"]), repr(group["momentum"]))
    optimizer.step()
    schedule.step()

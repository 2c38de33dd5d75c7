#!/usr/bin/env python3
"""Trains a ResNet-18 or a ViT-Ti on a folder of images to the end as a PyTorch user would:
DataLoader with Pillow, bf16 autocast, channels last, DistributedDataParallel under torchrun. The
peer of `lockstep train configs/images/...`: same augmentation, initialisation, optimizer, schedule.

    train_images.py --data FOLDER --model resnet18 --epochs 5 --lr 0.1 --weight-decay 5e-4
    torchrun --nproc-per-node 2 train_images.py ... --threads 1

FOLDER has train/CLASS/FILE and val/CLASS/FILE. Prints a line an epoch and a JSON object at the end.
`--init FILE` keeps the weights that it begins with, for `run.load_model=FILE`.
ResNet: SGD with Nesterov's momentum and OneCycle; ViT: AdamW, warm-up and cosine, labels smoothed.
"""
import argparse
import json
import math
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from image_folder import ImageFolder
from networks import ResNet, ViT
from timing import autocast, begin, machine


def optimizer_of(a, model, steps):
    if a.model == "resnet18":
        optimizer = torch.optim.SGD(model.parameters(), lr=a.lr, momentum=0.9, nesterov=True,
                                    weight_decay=a.weight_decay, fused=True)
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, a.lr, total_steps=steps)
    decayed = [w for n, w in model.named_parameters() if w.dim() > 1 and "_token" not in n
               and "pos_embed" not in n]
    chosen = set(map(id, decayed))
    others = [w for w in model.parameters() if id(w) not in chosen]
    optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=a.weight_decay),
                                   dict(params=others, weight_decay=0.0)],
                                  lr=a.lr, betas=(0.9, 0.999), fused=True)

    def factor(steps_done):
        step = steps_done + 1
        if step <= a.warmup:
            return step / a.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - a.warmup) / max(1, steps - a.warmup)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def evaluate(a, model, batches):
    model.eval()
    right = count = 0
    with torch.inference_mode(), autocast(a):
        for x, y in batches:
            x = x.contiguous(memory_format=torch.channels_last)
            right += int((model(x).argmax(1) == y).sum())
            count += len(y)
    model.train()
    return 100 * right / count


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--model", choices=["resnet18", "vit_ti"], default="resnet18")
    p.add_argument("--stem", choices=["cifar", "imagenet"], default="cifar")
    p.add_argument("--patch", type=int, default=4)
    p.add_argument("--size", type=int, default=32)
    p.add_argument("--crop-area", type=float, default=0, help="0: crops of padded images")
    p.add_argument("--mean", type=float, nargs=3, default=[0.4914, 0.4822, 0.4465])
    p.add_argument("--std", type=float, nargs=3, default=[0.247, 0.2435, 0.2616])
    p.add_argument("--batch", type=int, default=128, help="over all ranks")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--warmup", type=int, default=400)
    p.add_argument("--smoothing", type=float, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
    p.add_argument("--plain", action="store_true", help="images are neither cut nor mirrored")
    p.add_argument("--init", help="file to write the first weights to, as safetensors")
    return p.parse_args()


def main():
    a = parse()
    ranks = begin(a)
    augment = "none" if a.plain else "crop" if a.crop_area else "pad"
    data = ImageFolder(a.data / "train", a.size, augment, a.crop_area, (a.mean, a.std))
    sampler = DistributedSampler(data, drop_last=True, seed=1) if ranks.size > 1 else None
    loader = DataLoader(data, a.batch // ranks.size, shuffle=sampler is None, sampler=sampler,
                        num_workers=a.workers, persistent_workers=a.workers > 0, drop_last=True)
    held_out = ImageFolder(a.data / "val", a.size, normalise=(a.mean, a.std))
    validation = DataLoader(held_out, 250)
    if a.model == "resnet18":
        model = ResNet(a.model, data.classes, a.stem)
    else:
        model = ViT(a.model, data.classes, a.size, a.patch)
    if a.init and ranks.number == 0:
        from safetensors.torch import save_file
        save_file({n: w.contiguous() for n, w in model.state_dict().items()}, a.init)
    model = model.to(memory_format=torch.channels_last)
    optimizer, schedule = optimizer_of(a, model, a.epochs * len(loader))
    trained = nn.parallel.DistributedDataParallel(model) if ranks.size > 1 else model
    began, accuracies, rates, losses = time.perf_counter(), [], [], []
    for epoch in range(a.epochs):
        if sampler:
            sampler.set_epoch(epoch)
        start, images, total = time.perf_counter(), 0, 0.0
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with autocast(a):
                logits = trained(x.contiguous(memory_format=torch.channels_last))
                loss = F.cross_entropy(logits, y, label_smoothing=a.smoothing)
            loss.backward()
            if a.model == "vit_ti":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            images += len(y) * ranks.size
            total += loss.item() * len(y) * ranks.size
        losses.append(total / images)  # of rank 0
        rates.append(round(images / (time.perf_counter() - start), 1))
        if ranks.number == 0:
            accuracies.append(round(evaluate(a, model, validation), 2))
            print(f"epoch {epoch + 1}  loss {losses[-1]:.4f}  Acc@1 {accuracies[-1]}  "
                  f"{rates[-1]} images/s  {time.perf_counter() - began:.0f} s", flush=True)
        if ranks.size > 1:
            dist.barrier()
    if ranks.number == 0:
        seconds = round(time.perf_counter() - began, 1)
        print(json.dumps(dict(model=a.model, world=ranks.size, threads=a.threads, loss=losses,
                              images_per_s=rates, acc1=accuracies, seconds=seconds, **machine())))


main()

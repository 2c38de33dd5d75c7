#!/usr/bin/env python3
"""Images a second of a PyTorch DataLoader with Pillow: random resized crops of 224, mirrored,
normalised to fp32. The peer of benchmarks/image_loader; benchmarks/image_loader_ratio runs both.

    load_images.py FOLDER [--workers 0] [--epochs 4] [--batch 64]

FOLDER has CLASS/FILE. One epoch to warm up, then the median of five parts of --epochs each. Prints
one line of JSON.
"""
import argparse
import json
import pathlib
import time

import torch
from torch.utils.data import ConcatDataset, DataLoader

from image_folder import ImageFolder
from timing import machine, quartiles

PARTS = 5


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--workers", type=int, default=0, help="processes beside this one")
    p.add_argument("--epochs", type=int, default=4, help="of a part")
    p.add_argument("--batch", type=int, default=64)
    options = p.parse_args()
    torch.set_num_threads(1)
    data = ImageFolder(options.folder, options.size, "crop")
    shape = dict(batch_size=options.batch, shuffle=True, num_workers=options.workers,
                 persistent_workers=options.workers > 0)
    for _ in DataLoader(data, **shape):
        pass
    loader = DataLoader(ConcatDataset([data] * options.epochs), **shape)
    rates = []
    for _ in range(PARTS):
        start = time.perf_counter()
        images = sum(len(labels) for _, labels in loader)
        rates.append(images / (time.perf_counter() - start))
    low, median, high = quartiles(rates)
    print(json.dumps(dict(workload="image-loader", peer="torch", images=len(data),
                          workers=options.workers, images_per_s=round(median, 1),
                          quartiles_per_s=[round(low, 1), round(high, 1)], **machine())))


main()

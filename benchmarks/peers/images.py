#!/usr/bin/env python3
"""The training step of a network for images on made-up images in PyTorch: the peer of image_step.

    images.py [--model resnet50|resnet18|vit_b16] [--size PIXELS] [--batch N] [...]
    torchrun --nproc-per-node 2 images.py [...]

Channels last, fused SGD with momentum, AdamW for ViT; a batch of its own for each rank. --library
transformers: ViTForImageClassification of Hugging Face. The other words: --help.
"""
import os

import torch
import torch.nn.functional as F

from networks import RESNETS, VITS, ResNet, ViT
from timing import Batch, autocast, begin, parser, time_steps, wrap

CLASSES = 1000
DEFAULTS = {"resnet50": (224, 16), "resnet18": (64, 64)}  # pixels, images; of a ViT:
OF_VIT = (224, 8)


def hugging_face_vit(name, size):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import ViTConfig, ViTForImageClassification

    width, heads = VITS[name]
    return ViTForImageClassification(ViTConfig(
        hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, image_size=size,
        num_labels=CLASSES, attn_implementation="sdpa"))


def main():
    p = parser(__doc__)
    p.add_argument("--model", choices=[*RESNETS, *VITS], default="resnet50")
    p.add_argument("--size", type=int, help="pixels; 224, for resnet18 64")
    p.add_argument("--batch", type=int, help="images of a rank; 16, 64 (resnet18), 8 (ViT)")
    p.add_argument("--library", choices=["torch", "transformers"], default="torch")
    options = p.parse_args()
    size, batch = DEFAULTS.get(options.model, OF_VIT)
    size, batch = options.size or size, options.batch or batch
    is_vit = options.model in VITS
    if options.library == "transformers" and not is_vit:
        p.error("--library transformers has the ViTs alone")
    ranks = begin(options)
    if options.library == "transformers":
        model = hugging_face_vit(options.model, size)
    else:
        model = ViT(options.model, CLASSES, size) if is_vit else ResNet(options.model, CLASSES)
    model = model.to(memory_format=torch.channels_last)
    network = wrap(options, ranks, model)
    if is_vit:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4,
                                    fused=True)

    def make_batch(step):
        generator = torch.Generator().manual_seed(step * ranks.size + ranks.number)
        images = torch.randn(batch, 3, size, size, generator=generator)
        labels = torch.randint(0, CLASSES, (batch,), generator=generator)
        return Batch((images.contiguous(memory_format=torch.channels_last), labels), samples=batch)

    def train_step(images, labels):
        optimizer.zero_grad(set_to_none=True)
        with autocast(options):
            out = network(images)
            loss = F.cross_entropy(out if options.library == "torch" else out.logits, labels)
        loss.backward()
        optimizer.step()
        return loss

    time_steps(options, ranks, f"{options.model}-{size}", make_batch, train_step, batch=batch,
               library=options.library)


main()

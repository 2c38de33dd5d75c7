"""Networks for images with random weights, made, trained one step and loaded by transformers.

Usage: image_models.py make FOLDER    - FOLDER/NAME holds a model as save_pretrained writes it, and
                                        step.safetensors: images, labels, logits in use, those and the
                                        loss of a training step, its gradients (gradient.NAME), the
                                        running statistics after it (after.NAME); for a ViT also
                                        wide_images, wide_logits: of another size;
                                        FOLDER/published: publish()
       image_models.py check FOLDER...  - loads each with AutoModelForImageClassification, feeds it
                                        FOLDER/images.safetensors, writes FOLDER/logits.safetensors
                                        and prints its class, labels and what its processor is
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import (AutoImageProcessor, AutoModelForImageClassification,  # noqa: E402
                          ResNetConfig, ResNetForImageClassification, ViTConfig,
                          ViTForImageClassification, ViTImageProcessor, logging)

logging.set_verbosity_error()
torch.set_num_threads(1)
CLASSES = 7


def scatter(model):
    """Away from the values that networks start with, so that a mistake with any of them shows."""
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif tensor.is_floating_point():
            tensor.add_(torch.empty_like(tensor).uniform_(-0.1, 0.1))


def step(model, folder, size, wide):
    out = {"images": torch.randn(4, 3, size, size), "labels": torch.arange(4) % CLASSES}
    model.eval()
    with torch.no_grad():
        out["logits"] = model(out["images"]).logits
        if wide:
            out["wide_images"] = torch.randn(2, 3, size, size + 16)
            out["wide_logits"] = model(out["wide_images"], interpolate_pos_encoding=True).logits
    model.save_pretrained(folder)
    model.train()
    trained = model(out["images"])
    loss = torch.nn.functional.cross_entropy(trained.logits, out["labels"])
    loss.backward()
    out["trained_logits"], out["loss"] = trained.logits.detach(), loss.detach().reshape(1)
    for name, weight in model.named_parameters():
        out["gradient." + name] = weight.grad
    for name, buffer in model.named_buffers():
        if "running" in name:
            out["after." + name] = buffer
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "step.safetensors"))


def publish(folder):
    """A ViT-Ti as older models are: weights of torch.save, other epsilon, a square processor."""
    names = ["ant", "bee", "cat", "dog", "eel"]
    model = ViTForImageClassification(ViTConfig(
        hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768,
        image_size=32, patch_size=8, id2label=dict(enumerate(names)),
        label2id={name: i for i, name in enumerate(names)}))
    scatter(model)
    model.save_pretrained(folder, safe_serialization=False)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    images = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        logits = model.eval()(images).logits
    save_file({"images": images, "logits": logits.contiguous()},
              os.path.join(folder, "answers.safetensors"))


def make(folder):
    torch.manual_seed(5)
    vit = ViTForImageClassification(ViTConfig(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
        image_size=32, patch_size=8, num_labels=CLASSES, layer_norm_eps=1e-6))
    basic = ResNetForImageClassification(ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic",
        num_labels=CLASSES))
    bottleneck = ResNetForImageClassification(ResNetConfig(num_labels=CLASSES))
    narrow = ResNetForImageClassification(ResNetConfig(
        depths=[2, 2, 2, 2], embedding_size=32, hidden_sizes=[32, 64, 128, 256], layer_type="basic",
        num_labels=CLASSES))
    scatter(vit)
    for model in (basic, bottleneck, narrow):
        for name, tensor in model.state_dict().items():
            if "running" in name or "normalization" in name and tensor.is_floating_point():
                tensor.add_(torch.empty_like(tensor).uniform_(0, 0.2))
    publish(os.path.join(folder, "published"))
    step(vit, os.path.join(folder, "vit"), 32, True)
    step(basic, os.path.join(folder, "resnet18"), 64, False)
    step(bottleneck, os.path.join(folder, "resnet50"), 64, False)
    step(narrow, os.path.join(folder, "narrow"), 64, False)


def check(folder):
    model, found = AutoModelForImageClassification.from_pretrained(folder, output_loading_info=True)
    assert not found["missing_keys"] and not found["unexpected_keys"], found
    images = load_file(os.path.join(folder, "images.safetensors"))["images"]
    with torch.no_grad():
        logits = model.eval()(images).logits
    save_file({"logits": logits.contiguous()}, os.path.join(folder, "logits.safetensors"))
    processor = AutoImageProcessor.from_pretrained(folder)
    picture = torch.randint(0, 256, (3, 50, 70), dtype=torch.uint8).numpy()
    pixels = processor(picture, return_tensors="pt")["pixel_values"]
    print(type(model).__name__, model.config.id2label[3], list(pixels.shape))


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    for folder in sys.argv[2:]:
        check(folder)

"""A folder of images, CLASS/FILE, read with Pillow, cut and mirrored: what torchvision's
ImageFolder and transforms do."""
import math

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])  # mean, standard deviation


class ImageFolder(Dataset):
    """augment: none; pad (crops of images with 4 pixels of black around, mirrored); crop (random
    resized crops of at least `area` of an image, mirrored)."""

    def __init__(self, root, size, augment="none", area=0.08, normalise=IMAGENET):
        classes = sorted(d.name for d in root.iterdir() if d.is_dir())
        self.files = [(str(f), i) for i, c in enumerate(classes)
                      for f in sorted((root / c).iterdir())]
        self.classes, self.size, self.augment, self.area = len(classes), size, augment, area
        self.mean, self.std = (torch.tensor(v).view(3, 1, 1) for v in normalise)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):  # -> [3, height, width], label
        file, label = self.files[i]
        image = Image.open(file).convert("RGB")
        size = self.size
        if self.augment == "crop":
            image = image.crop(self.box(*image.size)).resize((size, size), Image.BILINEAR)
        x = np.array(image)
        if self.augment == "pad":
            x = np.pad(x, ((4, 4), (4, 4), (0, 0)))
            top, left = torch.randint(0, x.shape[0] - size + 1, (2,)).tolist()
            x = x[top : top + size, left : left + size]
        if self.augment != "none" and torch.rand(()) < 0.5:
            x = x[:, ::-1]
        x = torch.from_numpy(np.ascontiguousarray(x)).permute(2, 0, 1).contiguous()
        return x.float().div_(255).sub_(self.mean).div_(self.std), label

    def box(self, width, height):  # of torchvision's RandomResizedCrop
        for _ in range(10):
            area = width * height * (self.area + (1 - self.area) * torch.rand(()).item())
            ratio = math.exp((2 * torch.rand(()).item() - 1) * math.log(4 / 3))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if w <= width and h <= height:
                left = torch.randint(0, width - w + 1, ()).item()
                top = torch.randint(0, height - h + 1, ()).item()
                return left, top, left + w, top + h
        return 0, 0, width, height

"""Networks for images in plain PyTorch. Weights have the names and first values of torchvision's
ResNets and timm's ViTs, so that lockstep can begin with the same (`run.load_model`)."""
import torch
import torch.nn.functional as F
from torch import nn

RESNETS = {"resnet18": (False, (2, 2, 2, 2)), "resnet50": (True, (3, 4, 6, 3))}
VITS = {"vit_ti": (192, 3), "vit_b16": (768, 12)}  # width, heads; 12 layers


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    """Two convolutions of 3 x 3, or a 3 x 3 between two of 1 x 1, and the way around them."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        self.bottleneck = bottleneck
        if bottleneck:
            self.conv1, self.conv2 = conv(inputs, width, 1), conv(width, width, 3, stride)
            self.conv3, self.bn3 = conv(width, outputs, 1), nn.BatchNorm2d(outputs)
        else:
            self.conv1, self.conv2 = conv(inputs, width, 3, stride), conv(width, width, 3)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.downsample = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride),
                                            nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            y = self.bn3(self.conv3(self.relu(y)))
        return self.relu(y + self.downsample(x))


class ResNet(nn.Module):
    """He et al. 2015, the stride of a bottleneck in its 3 x 3. stem: imagenet, or cifar for small
    images (3 x 3, no pooling)."""

    def __init__(self, name, classes, stem="imagenet"):
        super().__init__()
        bottleneck, counts = RESNETS[name]
        self.conv1 = conv(3, 64, 7, 2) if stem == "imagenet" else conv(3, 64, 3)
        self.bn1, self.relu = nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if stem == "imagenet" else nn.Identity()
        inputs = 64
        for i, count in enumerate(counts):
            blocks = []
            for j in range(count):
                stride = 2 if i > 0 and j == 0 else 1
                blocks.append(Block(inputs, 64 << i, stride, bottleneck))
                inputs = (256 if bottleneck else 64) << i
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):  # [batch, 3, height, width] -> [batch, classes]
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):  # [batch, tokens, width]
        n, tokens, width = x.shape
        qkv = self.qkv(x).view(n, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # [batch, heads, tokens, width of a head]
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(n, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class ViTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.attn, self.mlp = Attention(width, heads), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):  # [batch, 3, height, width of the image] -> [batch, patches, width]
        return self.proj(x).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    """Dosovitskiy et al. 2021."""

    def __init__(self, name, classes, size, patch=16, layers=12):
        super().__init__()
        width, heads = VITS[name]
        self.patch_embed = Patches(width, patch)
        self.cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.pos_embed = nn.Parameter(torch.empty(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(ViTBlock(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, classes)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)
        nn.init.normal_(self.cls_token, std=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x)[:, 0]))

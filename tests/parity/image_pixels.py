"""Pillow's pixels, to compare ours with.

    image_pixels.py make FOLDER     writes images of many kinds
    image_pixels.py check CASES     CASES: one JSON object a line; see check() for what they say

Prints a JSON object a case: mean and largest difference of grey levels over all channels. The
transforms are those of torchvision 0.28 on Pillow images, written out.
"""
import json
import math
import pathlib
import sys

import numpy
from PIL import Image, ImageEnhance, ImageOps

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def make(folder):
    folder = pathlib.Path(folder)
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:211, 0:317]
    smooth = numpy.stack([128 + 100 * numpy.sin(x / 17 + c) * numpy.cos(y / (11 + 3 * c)) for c in range(3)], -1)
    pixels = numpy.clip(smooth + random.normal(0, 20, smooth.shape), 0, 255).astype(numpy.uint8)
    image = Image.fromarray(pixels)
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        image.save(folder / f"colour{name}.jpg", quality=92, subsampling=sampling)
    image.save(folder / "progressive.jpg", quality=80, progressive=True)
    image.save(folder / "restarts.jpg", quality=80, restart_marker_blocks=7)
    image.convert("L").save(folder / "grey.jpg")
    image.convert("CMYK").save(folder / "cmyk.jpg")
    image.crop((3, 5, 40, 36)).save(folder / "small.jpg")
    image.resize((1501, 1100)).save(folder / "large.jpg")
    image.save(folder / "colour.png")
    image.save(folder / "png_named.jpg", format="PNG")
    image.convert("L").save(folder / "grey.png")
    image.quantize(60).save(folder / "palette.png")
    rgba = image.convert("RGBA")
    rgba.putalpha(image.convert("L"))
    rgba.save(folder / "alpha.png")


def evaluation(image, case):
    w, h = image.size
    if case["resize"]:
        short, long = min(w, h), max(w, h)
        long = int(case["resize"] * long / short)
        w, h = (case["resize"], long) if w <= h else (long, case["resize"])
        image = image.resize((w, h), FILTERS[case["filter"]])
    left, top = int(round((w - case["size"]) / 2.0)), int(round((h - case["size"]) / 2.0))
    return image.crop((left, top, left + case["size"], top + case["size"]))


def crop(image, case):
    x, y, w, h = case["box"]
    # In two steps: which axis Pillow takes first depends on its version and on the sizes.
    image = image.crop((x, y, x + w, y + h)).resize((case["size"], h), FILTERS[case["filter"]])
    image = image.resize((case["size"], case["size"]), FILTERS[case["filter"]])
    return image.transpose(Image.FLIP_LEFT_RIGHT) if case["mirror"] else image


def affine(image, matrix):
    return image.transform(image.size, Image.AFFINE, matrix, Image.NEAREST)


def operate(image, number, magnitude, sign):
    m = magnitude / 30
    w, h = image.size
    factor = 1 + sign * 0.9 * m
    return [
        lambda: image,
        lambda: affine(image, (1, sign * 0.3 * m, 0, 0, 1, 0)),
        lambda: affine(image, (1, 0, 0, sign * 0.3 * m, 1, 0)),
        lambda: affine(image, (1, 0, -int(sign * 150 / 331 * w * m), 0, 1, 0)),
        lambda: affine(image, (1, 0, 0, 0, 1, -int(sign * 150 / 331 * h * m))),
        lambda: image.rotate(sign * 30 * m, Image.NEAREST),
        lambda: ImageEnhance.Brightness(image).enhance(factor),
        lambda: ImageEnhance.Color(image).enhance(factor),
        lambda: ImageEnhance.Contrast(image).enhance(factor),
        lambda: ImageEnhance.Sharpness(image).enhance(factor),
        lambda: ImageOps.posterize(image, 8 - round(magnitude / (30 / 4))),
        lambda: ImageOps.solarize(image, 255 - 255 * m),
        lambda: ImageOps.autocontrast(image),
        lambda: ImageOps.equalize(image),
    ][number]()


def adjust_hue(image, share):
    h, s, v = image.convert("HSV").split()
    shifted = numpy.array(h, dtype=numpy.uint8)
    with numpy.errstate(over="ignore"):
        shifted += numpy.int32(share * 255).astype(numpy.uint8)
    return Image.merge("HSV", (Image.fromarray(shifted, "L"), s, v)).convert("RGB")


def check(cases):
    for line in open(cases, encoding="utf-8"):
        case = json.loads(line)
        image = Image.open(case["file"]).convert("RGB")
        image = {"evaluation": evaluation, "crop": crop}[case["transform"]](image, case)
        if "operation" in case:
            image = operate(image, case["operation"], case["magnitude"], case["sign"])
        if "hue" in case:
            image = adjust_hue(image, case["hue"])
        wanted = numpy.asarray(image, dtype=numpy.int32)
        got = numpy.fromfile(case["raw"], dtype=numpy.uint8).astype(numpy.int32).reshape(wanted.shape)
        difference = abs(got - wanted)
        print(json.dumps({"mean": float(difference.mean()), "largest": int(difference.max())}))


{"make": make, "check": check}[sys.argv[1]](sys.argv[2])

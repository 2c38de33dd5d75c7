"""A CTranslate2 model made from a checkpoint of lockstep, for the decoding benchmark.

    ctranslate2_model.py RUN OUT [--checkpoint step_N] [--random base --vocabulary 32000]

The networks are the same: pre-norm, one table, sinusoidal positions (interleaved), so the weights
are only renamed. OUT can be given to ctranslate2.Translator.
"""
import argparse
import json
import math
import pathlib
import sys

import numpy
from ctranslate2.specs import common_spec, transformer_spec
from safetensors.numpy import load_file

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib


def positions(count, width):
    angle = numpy.arange(count)[:, None] / 10000.0 ** (numpy.arange(0, width, 2) / width)[None]
    return numpy.stack([numpy.sin(angle), numpy.cos(angle)], 2).reshape(count, width).astype("f4")


def build(weights, model, pieces, out):
    """weights: names of lockstep -> arrays; model: its [model] section; pieces: the vocabulary."""
    layers = (model["encoder_layers"], model["decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(
        layers, model["heads"], pre_norm=True, activation=common_spec.Activation.RELU
    )

    def linear(to, *names):
        to.weight = numpy.concatenate([weights[n + ".weight"] for n in names])
        to.bias = numpy.concatenate([weights[n + ".bias"] for n in names])

    def norm(to, name):
        to.gamma, to.beta = weights[name + ".weight"], weights[name + ".bias"]

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        table.weight = weights["embedding.weight"]
        stack.scale_embeddings = True
        stack.position_encodings.encodings = positions(512, model["d_model"])
        norm(stack.layer_norm, f"{side}.norm")
        for i, layer in enumerate(stack.layer):
            at = f"{side}.{i}."
            norm(layer.self_attention.layer_norm, at + "norm1")
            linear(layer.self_attention.linear[0], at + "attention.qkv")
            linear(layer.self_attention.linear[1], at + "attention.out")
            if side == "decoder":
                norm(layer.attention.layer_norm, at + "norm2")
                for to, name in zip(layer.attention.linear, ("query", "memory", "out")):
                    linear(to, f"{at}cross.{name}")
            norm(layer.ffn.layer_norm, at + ("norm3" if side == "decoder" else "norm2"))
            linear(layer.ffn.linear_0, at + "feed_forward.up")
            linear(layer.ffn.linear_1, at + "feed_forward.down")
    spec.decoder.projection.weight = weights["embedding.weight"]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = "<unk>", "<s>", "</s>"
    config.decoder_start_token, config.add_source_eos = "<s>", False
    spec.validate()
    spec.optimize(quantization=None)
    out.mkdir(parents=True, exist_ok=True)
    spec.save(str(out))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("run", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--checkpoint", default="newest")
    a = p.parse_args()
    import sentencepiece

    model = tomllib.loads((a.run / "config.toml").read_text())["model"]
    steps = sorted((a.run / "checkpoints").glob("step_*"), key=lambda s: int(s.name[5:]))
    folder = steps[-1] if a.checkpoint == "newest" else a.run / "checkpoints" / a.checkpoint
    average = folder / "average.safetensors"
    weights = load_file(average if average.exists() else folder / "weights.safetensors")
    subword = sentencepiece.SentencePieceProcessor(model_file=str(a.run / "subword.model"))
    pieces = [subword.id_to_piece(i) for i in range(subword.get_piece_size())]
    missing = weights["embedding.weight"].shape[0] - len(pieces)
    build(weights, model, pieces + [f"<unused{i}>" for i in range(missing)], a.out)


main()

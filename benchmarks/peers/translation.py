#!/usr/bin/env python3
"""The training step of a Transformer for translation in PyTorch: the peer of transformer_step.

    translation.py [--size base|small] [--library torch|transformers] [--lengths FILE] [...]
    torchrun --nproc-per-node 2 translation.py [...]

--size: Transformer-base (1,500 target tokens a rank) or the quickstart's (2,048). --library:
torch.nn.Transformer, or MarianMTModel of Hugging Face; both attend by scaled_dot_product_attention.
--lengths: a file of lengths.py; without it the same lengths are made here. The other words: --help.
Dropout 0.1 everywhere, labels smoothed by 0.1, one table for embeddings and output, fused Adam.
"""
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

import lengths
from timing import Batch, autocast, begin, parser, time_steps, wrap

# Width, layers of encoder and of decoder, heads, inner width, vocabulary.
SIZES = {
    "base": (512, 6, 8, 2048, 32000),
    "small": (256, 3, 4, 1024, 8000),
    "tiny": (32, 1, 2, 64, 100),  # for the test
}
DROPOUT = 0.1
PAD = 0
FIRST_WORD = 4  # smaller ids are special
LONGEST = 128


class Translator(nn.Module):
    """torch.nn.Transformer between embeddings with sines and the same table as output."""

    def __init__(self, width, layers, heads, inner, vocabulary):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width, padding_idx=PAD)
        nn.init.normal_(self.table.weight, std=width ** -0.5)
        self.transformer = nn.Transformer(width, heads, layers, layers, inner, DROPOUT,
                                          batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)
        self.scale = math.sqrt(width)
        angles = torch.outer(torch.arange(LONGEST), 1e4 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("sines", torch.cat([angles.sin(), angles.cos()], 1), persistent=False)

    def embed(self, ids):  # [batch, time] -> [batch, time, width]
        return self.dropout(self.table(ids) * self.scale + self.sines[: ids.shape[1]])

    def forward(self, source, target):  # -> [batch, target's time, vocabulary]
        time = target.shape[1]
        later = torch.ones(time, time, dtype=torch.bool).triu(1)
        out = self.transformer(self.embed(source), self.embed(target), tgt_mask=later,
                               src_key_padding_mask=source == PAD,
                               tgt_key_padding_mask=target == PAD,
                               memory_key_padding_mask=source == PAD, tgt_is_causal=True)
        return F.linear(out, self.table.weight)


class Marian(nn.Module):
    def __init__(self, width, layers, heads, inner, vocabulary):
        super().__init__()
        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import MarianConfig, MarianMTModel

        self.model = MarianMTModel(MarianConfig(
            vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers,
            encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=inner,
            decoder_ffn_dim=inner, dropout=DROPOUT, attention_dropout=DROPOUT,
            activation_dropout=DROPOUT, activation_function="relu", scale_embedding=True,
            max_position_embeddings=LONGEST, pad_token_id=PAD, eos_token_id=1,
            decoder_start_token_id=2, attn_implementation="sdpa"))

    def forward(self, source, target):
        return self.model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target,
                          decoder_attention_mask=target != PAD, use_cache=False).logits


def sentences(lengths_of_batch, vocabulary, generator):  # -> [batch, the longest], padded
    out = torch.full((len(lengths_of_batch), max(lengths_of_batch)), PAD)
    for row, length in zip(out, lengths_of_batch):
        row[:length] = torch.randint(FIRST_WORD, vocabulary, (length,), generator=generator)
    return out


def main():
    p = parser(__doc__)
    p.add_argument("--size", choices=list(SIZES), default="base")
    p.add_argument("--library", choices=["torch", "transformers"], default="torch")
    p.add_argument("--lengths")
    options = p.parse_args()
    ranks = begin(options)
    shape = SIZES[options.size]
    model = (Translator if options.library == "torch" else Marian)(*shape)
    network = wrap(options, ranks, model, lengths_vary=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9,
                                 fused=True)
    if options.lengths:
        pairs = [list(zip(line[::2], line[1::2])) for line in lengths.read(options.lengths)]
    else:
        pairs = lengths.translation(options.size, ranks.size * (options.warmup + options.steps))

    def make_batch(step):
        line = step * ranks.size + ranks.number
        generator = torch.Generator().manual_seed(line)
        source, target = zip(*pairs[line])
        outputs = sentences(target, shape[-1], generator)
        inputs = F.pad(outputs, (1, 0), value=2)[:, :-1]  # begins with a mark
        inputs = inputs.masked_fill(outputs == PAD, PAD)
        data = (sentences(source, shape[-1], generator), inputs, outputs)
        return Batch(data, samples=len(target), tokens=sum(target))

    def train_step(source, inputs, outputs):
        optimizer.zero_grad(set_to_none=True)
        with autocast(options):
            logits = network(source, inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=PAD,
                                   label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss

    time_steps(options, ranks, f"nmt-{options.size}", make_batch, train_step,
               library=options.library)


main()

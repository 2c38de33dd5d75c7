#!/usr/bin/env python3
"""The training step of BERT that classifies made-up texts, BertForSequenceClassification of Hugging
Face's transformers: the peer of text_step.

    text.py [--size base|large|minilm] [--batch N] [--length TOKENS] [--lengths FILE] [...]
    torchrun --nproc-per-node 2 text.py [...]

--lengths: a file of lengths.py, in place of --batch and --length; a batch is padded to its longest
text, as DataCollatorWithPadding does. Fused AdamW that decays matrices alone, gradients clipped at
1, attention by scaled_dot_product_attention. The other words: --help.
"""
import os

import torch

import lengths
from timing import Batch, autocast, begin, parser, time_steps, wrap

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import BertConfig, BertForSequenceClassification  # noqa: E402

SIZES = {
    "base": {},
    "large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                  intermediate_size=4096),
    "minilm": dict(hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
    "tiny": dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                 intermediate_size=64),  # for the test
}
FIRST_WORD, LAST_WORD = 1000, 30000


def main():
    p = parser(__doc__)
    p.add_argument("--size", choices=list(SIZES), default="base")
    p.add_argument("--batch", type=int, default=16, help="texts of a rank")
    p.add_argument("--length", type=int, default=128)
    p.add_argument("--lengths")
    p.add_argument("--dropout", type=float, default=0.1)
    options = p.parse_args()
    ranks = begin(options)
    model = BertForSequenceClassification(BertConfig(
        num_labels=2, attn_implementation="sdpa", hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout, **SIZES[options.size]))
    network = wrap(options, ranks, model, lengths_vary=bool(options.lengths))
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [dict(params=[w for w in weights if w.dim() > 1], weight_decay=0.01),
         dict(params=[w for w in weights if w.dim() <= 1], weight_decay=0.0)], lr=5e-5, fused=True)
    batches = [[options.length] * options.batch]
    if options.lengths:
        batches = lengths.read(options.lengths)

    def make_batch(step):
        line = step * ranks.size + ranks.number
        generator = torch.Generator().manual_seed(line)
        count = torch.tensor(batches[line % len(batches)])
        mask = torch.arange(int(count.max())) < count[:, None]  # [texts, the longest]
        ids = torch.randint(FIRST_WORD, LAST_WORD, mask.shape, generator=generator) * mask
        labels = torch.randint(0, 2, (len(count),), generator=generator)
        return Batch((ids, mask.long(), labels), samples=len(count), tokens=int(count.sum()))

    def train_step(ids, mask, labels):
        optimizer.zero_grad(set_to_none=True)
        with autocast(options):
            loss = network(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return loss

    workload = f"bert-{options.size}" + ("-lengths" if options.lengths else "")
    time_steps(options, ranks, workload, make_batch, train_step, library="transformers")


main()

#!/usr/bin/env python3
"""Lengths of the batches on which lockstep and its peers are compared: a line a batch. Rank r of n
takes lines r, r + n, ...

    lengths.py translation [--size base] [--batches 22] > lengths.txt
    lengths.py text FILE.tsv[.gz] --vocab vocab.txt [--batch 16] > lengths.txt

translation: "source target" of each sentence pair, drawn from a log-normal distribution (a target
of 25 tokens on average, its source within about 15 % of that). Pairs of like length share a batch
of as many target tokens as the size asks for; the batches are shuffled.
text: of each text of a batch, in a random order. A line of the file ends with its text; the lengths
are those of BERT's tokens with [CLS] and [SEP], cut at 512. Needs the package tokenizers.
"""
import argparse
import gzip
import random
import sys

# Target tokens of a rank's batch: of Transformer-base, of configs/translation/quickstart.toml.
TRANSLATION_TOKENS = {"base": 1500, "small": 2048, "tiny": 60}
POOL = 60000  # sentence pairs from which batches are made


def between(low, value, high):
    return max(low, min(high, round(value)))


def translation(size, batches, seed=1):
    """Batches of [(source, target), ...]."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(POOL):
        target = between(3, draw.lognormvariate(3.05, 0.6), 100)
        pairs.append((between(3, target * draw.lognormvariate(0, 0.15), 110), target))
    pairs.sort(key=lambda pair: (pair[1], pair[0]))
    out, batch, tokens = [], [], 0
    for pair in pairs:
        batch.append(pair)
        tokens += pair[1]
        if tokens >= TRANSLATION_TOKENS[size]:
            out.append(batch)
            batch, tokens = [], 0
    draw.shuffle(out)
    if len(out) < batches:
        sys.exit(f"lengths.py: {batches} batches asked for, {len(out)} can be made")
    return out[:batches]


def text(path, vocabulary, batch, seed=1):
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
    tokenizer.enable_truncation(512)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n").split("\t")[-1] for line in file]
    lengths = [len(e.ids) for e in tokenizer.encode_batch(texts)]
    random.Random(seed).shuffle(lengths)
    return [lengths[i:i + batch] for i in range(0, len(lengths) - batch, batch)]


def read(path):
    """What main() wrote: a list of numbers a batch."""
    with open(path, encoding="utf-8") as file:
        return [[int(word) for word in line.split()] for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    kind = kinds.add_parser("translation")
    kind.add_argument("--size", choices=list(TRANSLATION_TOKENS), default="base")
    kind.add_argument("--batches", type=int, default=22)
    kind = kinds.add_parser("text")
    kind.add_argument("file")
    kind.add_argument("--vocab", required=True)
    kind.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()
    if options.kind == "translation":
        for batch in translation(options.size, options.batches):
            print(" ".join(f"{source} {target}" for source, target in batch))
    else:
        for batch in text(options.file, options.vocab, options.batch):
            print(*batch)


if __name__ == "__main__":
    main()

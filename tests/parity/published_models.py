"""Translation models as others publish them, made by transformers with random weights.

Usage: published_models.py make FOLDER SOURCE TARGET - learns SentencePiece models on the two files of
           lines and writes FOLDER/NAME for each model below, as save_pretrained does, with a folder
           check:
             ids.json           [[line, ids of it as source, ids of it as target], ...]
             translations.json  {"lines": [...], "ids": [...], "texts": [...]} as generate() gives them
             logits.safetensors source, target (decoder input), logits
             scores.json        log-probabilities of the tokens of pairs of lines
       published_models.py load FOLDER OTHER - loads both; prints as JSON the largest difference of
           their weights, their classes and whether their tokenizers agree
"""
import json
import os
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import sentencepiece  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import (AutoModelForSeq2SeqLM, AutoTokenizer, M2M100Config,  # noqa: E402
                          M2M100ForConditionalGeneration, M2M100Tokenizer, MarianConfig,
                          MarianMTModel, MarianTokenizer, NllbTokenizer, logging)

logging.set_verbosity_error()
torch.set_num_threads(1)
SHAPE = dict(d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=4,
             decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
             max_position_embeddings=128, dropout=0.1, attention_dropout=0.0)
TRANSLATED = 40  # lines


def learn(lines, name, kind, size):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=name, vocab_size=size, model_type=kind,
        hard_vocab_limit=False, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_file=name + ".model")


def pieces_of(model):
    return [model.id_to_piece(i) for i in range(model.get_piece_size())
            if not model.is_control(i) and not model.is_unknown(i)]


def write_json(value, path):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=False)


def numbered(pieces):
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def scatter(model):
    """Far enough from the values that networks start with for every weight to matter."""
    generator = torch.Generator().manual_seed(3)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and "embed_positions" not in name:
            tensor.add_(torch.empty_like(tensor).uniform_(-0.25, 0.25, generator=generator))


def marian_tokenizer(place, models, extra=(), separate=False):
    paths = [os.path.join(place, side + ".model") for side in ("source", "target")]
    source, target = (pieces_of(model) for model in models)
    vocabulary = os.path.join(place, "vocab.json")
    if separate:
        other = os.path.join(place, "target_vocab.json")
        longest = max(len(source), len(target))  # transformers 4.57 wants tables of one size
        for pieces, path in ((source, vocabulary), (target, other)):
            filling = [f"<filling{i}>" for i in range(longest - len(pieces))]
            write_json(numbered(["</s>", "<unk>", "<pad>"] + pieces + filling), path)
        return MarianTokenizer(*paths, vocabulary, target_vocab_file=other, separate_vocabs=True)
    write_json(numbered(["</s>", "<unk>"] + source + target + list(extra) + ["<pad>"]), vocabulary)
    return MarianTokenizer(*paths, vocabulary, source_lang="en", target_lang="de")


def marian(tokenizer, **settings):
    pad = tokenizer.pad_token_id
    settings = dict(SHAPE, vocab_size=len(tokenizer.encoder), pad_token_id=pad, eos_token_id=0,
                    decoder_start_token_id=pad, forced_eos_token_id=0, scale_embedding=True) | settings
    model = MarianMTModel(MarianConfig(**settings)).eval()
    scatter(model)
    with torch.no_grad():
        model.final_logits_bias.uniform_(-0.5, 0.5)
        model.final_logits_bias[0, pad] = 0
        if model.config.share_encoder_decoder_embeddings:
            model.model.shared.weight[pad].zero_()
    model.generation_config.update(bad_words_ids=[[pad]], num_beams=4, max_length=24)
    return model


def m2m100(tokenizer, vocabulary, language, **settings):
    model = M2M100ForConditionalGeneration(
        M2M100Config(**SHAPE | dict(vocab_size=vocabulary, activation_function="relu") | settings)).eval()
    scatter(model)
    model.generation_config.update(num_beams=4, max_length=24, early_stopping=True,
                                   forced_bos_token_id=language)
    return model


def make_models(folder, sources, targets):
    place = os.path.join(folder, "pieces")
    os.makedirs(place)
    models = (learn(sources, os.path.join(place, "source"), "unigram", 160),
              learn(targets, os.path.join(place, "target"), "unigram", 200))
    both = learn(sources + targets, os.path.join(place, "both"), "bpe", 260)
    plain = marian_tokenizer(place, models, extra=[">>deu<<", ">>nld<<"])
    renormalized = marian(plain, activation_function="relu", tie_word_embeddings=False,
                          scale_embedding=False)
    renormalized.generation_config.update(renormalize_logits=True, length_penalty=0.6)
    yield "swish", plain, marian(plain, activation_function="swish")
    yield "untied", plain, renormalized
    apart = marian_tokenizer(place, models, separate=True)
    yield "separate", apart, marian(apart, activation_function="gelu",
                                    decoder_vocab_size=len(apart.target_encoder),
                                    share_encoder_decoder_embeddings=False)
    vocabulary = os.path.join(place, "m2m100.json")
    write_json(numbered(["<s>", "<pad>", "</s>", "<unk>"] + pieces_of(both)), vocabulary)
    many = M2M100Tokenizer(vocabulary, os.path.join(place, "both.model"), src_lang="en", tgt_lang="de")
    yield "m2m100", many, m2m100(many, len(many.encoder) + 108, many.get_lang_id("de"))
    nllb = NllbTokenizer(os.path.join(place, "both.model"), src_lang="eng_Latn", tgt_lang="deu_Latn")
    yield "nllb", nllb, m2m100(nllb, len(nllb) + 3, nllb.convert_tokens_to_ids("deu_Latn"),
                               activation_function="gelu")


def check_files(folder, tokenizer, model, sources, targets):
    os.makedirs(folder)
    lines = sources + targets
    ids = [[line, tokenizer(line)["input_ids"], tokenizer(text_target=line)["input_ids"]]
           for line in lines]
    write_json(ids, os.path.join(folder, "ids.json"))
    some = [line for line in sources if line.strip()][:TRANSLATED]
    with torch.no_grad():
        batch = tokenizer(some, return_tensors="pt", padding=True)
        out = model.generate(**batch)
        write_json({"lines": some, "ids": out.tolist(),
                    "texts": tokenizer.batch_decode(out, skip_special_tokens=True)},
                   os.path.join(folder, "translations.json"))
        source = torch.tensor([ids[0][1]])
        labels = torch.tensor([tokenizer(text_target=targets[0])["input_ids"]])
        start = torch.full((1, 1), model.config.decoder_start_token_id)
        target = torch.cat([start, labels[:, :-1]], 1)
        logits = model(input_ids=source, decoder_input_ids=target).logits
        save_file(dict(source=source, target=target, logits=logits.contiguous()),
                  os.path.join(folder, "logits.safetensors"))
        scores = []
        for one, other in list(zip(sources, targets))[:20]:
            encoded = tokenizer(one, return_tensors="pt")
            labels = tokenizer(text_target=other, return_tensors="pt")["input_ids"]
            inputs = torch.cat([start, labels[:, :-1]], 1)
            found = model(**encoded, decoder_input_ids=inputs).logits.log_softmax(-1)
            scores.append([one, other, found.gather(2, labels.unsqueeze(2)).flatten().tolist()])
        write_json(scores, os.path.join(folder, "scores.json"))


def read_lines(path):
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def make(folder, source, target):
    torch.manual_seed(7)
    sources, targets = read_lines(source), read_lines(target)
    for name, tokenizer, model in make_models(folder, sources, targets):
        place = os.path.join(folder, name)
        # "untied" as torch.save writes it, as the older repositories of the hub are.
        model.save_pretrained(place, safe_serialization=name != "untied")
        tokenizer.save_pretrained(place)
        check_files(os.path.join(place, "check"), tokenizer, model, sources, targets)


def load(folder, other):
    models = [AutoModelForSeq2SeqLM.from_pretrained(f).float() for f in (folder, other)]
    tokenizers = [AutoTokenizer.from_pretrained(f, use_fast=False) for f in (folder, other)]
    states = [model.state_dict() for model in models]
    same = states[0].keys() == states[1].keys()
    difference = max((states[0][k] - states[1][k]).abs().max().item() for k in states[0]) if same else -1
    text = "Ein \u00dcbersetzer, der >>x<< 1,5 \u4f60 liest."
    print(json.dumps({
        "classes": [type(x).__name__ for x in models + tokenizers],
        "difference": difference,
        "same_ids": tokenizers[0](text)["input_ids"] == tokenizers[1](text)["input_ids"],
        "same_generation": (models[0].generation_config.to_dict() ==
                            models[1].generation_config.to_dict())}))


if sys.argv[1] == "make":
    make(*sys.argv[2:5])
else:
    load(*sys.argv[2:4])

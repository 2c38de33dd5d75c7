"""Tokenizes with the libraries of reference. Reads {model, kind, lowercase, max_length, lines} from
the JSON file named; a line is a text or a list of two. Prints a JSON list of {ids, type_ids, pieces,
decoded}, one a line."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    job = json.load(file)
results = []
if job["kind"] == "wordpiece":
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(job["model"], lowercase=job["lowercase"])
    if job["max_length"]:
        tokenizer.enable_truncation(job["max_length"])
    lines = [line if isinstance(line, str) else tuple(line) for line in job["lines"]]
    for encoding in tokenizer.encode_batch(lines):
        result = {"ids": encoding.ids, "type_ids": encoding.type_ids, "pieces": encoding.tokens}
        result["decoded"] = tokenizer.decode(encoding.ids, skip_special_tokens=True)
        results.append(result)
else:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=job["model"])
    for line in job["lines"]:
        ids = processor.encode(line)
        pieces = processor.encode(line, out_type=str)
        results.append({"ids": ids, "pieces": pieces, "decoded": processor.decode(ids)})
json.dump(results, sys.stdout)

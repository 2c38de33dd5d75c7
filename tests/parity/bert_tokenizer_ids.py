"""What transformers' BertTokenizerFast makes of texts. Reads a list of jobs {folder, max_length,
lines} from the JSON file named; a line is a text or a list of two; `folder` holds vocab.txt and
tokenizer_config.json. Prints a JSON list with a list of {ids, type_ids} a job."""
import json
import pathlib
import sys

from transformers import BertTokenizerFast

with open(sys.argv[1], encoding="utf-8") as file:
    jobs = json.load(file)
results = []
for job in jobs:
    folder = pathlib.Path(job["folder"])
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), **config)
    encodings = []
    for line in job["lines"]:
        # In lists, as data sets are tokenized: by itself an empty second text counts as none.
        texts = [[text] for text in line] if isinstance(line, list) else [[line]]
        encoded = tokenizer(*texts, truncation="longest_first", max_length=job["max_length"])
        encodings.append({"ids": encoded["input_ids"][0], "type_ids": encoded["token_type_ids"][0]})
    results.append(encodings)
json.dump(results, sys.stdout)

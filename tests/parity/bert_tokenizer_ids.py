"""What transformers' BertTokenizerFast makes of texts. Reads a list of jobs {folder, max_length,
lines} from the JSON file named; a line is a text or a list of two; `folder` holds vocab.txt and
tokenizer_config.json. Prints a JSON list with a list of {ids, type_ids} a job."""
import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import BertTokenizerFast

with open(sys.argv[1], encoding="utf-8") as file:
    jobs = json.load(file)
results = []
for job in jobs:
    tokenizer = BertTokenizerFast.from_pretrained(job["folder"])
    encodings = []
    for line in job["lines"]:
        first, second = line if isinstance(line, list) else (line, None)
        encoded = tokenizer(first, second, truncation="longest_first", max_length=job["max_length"])
        encodings.append({"ids": encoded["input_ids"], "type_ids": encoded["token_type_ids"]})
    results.append(encodings)
json.dump(results, sys.stdout)

"""Scores cases with sacreBLEU. Reads a JSON list of {hypotheses, references, options} from the
file named, prints a JSON list of what the package computes and formats for each."""
import json
import logging
import sys

from sacrebleu.metrics import BLEU

logging.disable(logging.WARNING)  # about sentences without effective order: wanted here

with open(sys.argv[1], encoding="utf-8") as file:
    cases = json.load(file)
results = []
for case in cases:
    bleu = BLEU(**case["options"])
    score = bleu.corpus_score(case["hypotheses"], case["references"])
    results.append(
        {
            "score": score.score,
            "precisions": score.precisions,
            "counts": [int(c) for c in score.counts],
            "totals": [int(t) for t in score.totals],
            "bp": score.bp,
            "sys_len": score.sys_len,
            "ref_len": score.ref_len,
            "line": score.format(width=1, signature=bleu.get_signature().format()),
        }
    )
json.dump(results, sys.stdout)

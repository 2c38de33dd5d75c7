"""Scores cases with sacreBLEU. Reads a JSON list of {metric, hypotheses, references, options} from
the file named, prints a JSON list of what the package computes and formats for each."""
import json
import logging
import sys

from sacrebleu.metrics import METRICS

logging.disable(logging.WARNING)  # about sentences without effective order: wanted here

with open(sys.argv[1], encoding="utf-8") as file:
    cases = json.load(file)
results = []
for case in cases:
    metric = METRICS[case["metric"]](**case["options"])
    score = metric.corpus_score(case["hypotheses"], case["references"])
    segments = metric._extract_corpus_statistics(case["hypotheses"], case["references"])
    result = {
        "score": score.score,
        "segments": segments,
        "line": score.format(width=1, signature=metric.get_signature().format()),
    }
    if case["metric"] == "BLEU":
        result["precisions"] = score.precisions
        result["counts"] = [int(c) for c in score.counts]
        result["totals"] = [int(t) for t in score.totals]
        result["bp"] = score.bp
        result["sys_len"] = score.sys_len
        result["ref_len"] = score.ref_len
    results.append(result)
json.dump(results, sys.stdout)

"""Figures of scikit-learn and scipy for random answers.

Usage: sklearn_scores.py FILE - each line of FILE is a case: classes, then the labels, then the answers,
                                as three lists of numbers parted by tabulators; classes 0: values.
                                Prints a line of figures for each.
"""
import sys

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, mean_squared_error, precision_recall_fscore_support

for line in open(sys.argv[1], encoding="utf-8"):
    classes, labels, answers = line.rstrip("\n").split("\t")
    labels = np.array([float(x) for x in labels.split()])
    answers = np.array([float(x) for x in answers.split()])
    if int(classes) == 0:
        figures = [pearsonr(labels, answers)[0], spearmanr(labels, answers)[0],
                   mean_squared_error(labels, answers)]
    else:
        labels, answers = labels.astype(int), answers.astype(int)
        figures = [accuracy_score(labels, answers)]
        for average in ("macro", "weighted", "micro"):
            figures += precision_recall_fscore_support(labels, answers, average=average,
                                                       zero_division=0)[:3]
        figures += [x[1] for x in precision_recall_fscore_support(
            labels, answers, labels=range(int(classes)), zero_division=0)[:3]]
    print(" ".join(repr(float(x)) for x in figures))

// Computes accuracy, precision, recall and F1 over classes like scikit-learn's accuracy_score and
// precision_recall_fscore_support (zero_division = 0).
#pragma once

#include <cstdint>

#include "metrics/confusion.h"

namespace lockstep {

struct PrecisionRecall {
  double precision = 0, recall = 0, f1 = 0;
};

struct ClassificationScores {
  double accuracy = 0;
  PrecisionRecall macro;     // mean over the classes that occur as labels or predictions
  PrecisionRecall weighted;  // the same, weighted by the items of each class
  PrecisionRecall micro;     // over all items together: each value is the accuracy
  PrecisionRecall binary;    // of the class `positive` only
};

// REQUIRES: at least one item, and 0 <= positive < confusion.size().
ClassificationScores classification_scores(const Confusion& confusion, int64_t positive);

}  // namespace lockstep

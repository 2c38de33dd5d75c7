// Computes accuracy, precision, recall and F1 over classes like scikit-learn's accuracy_score and
// precision_recall_fscore_support (zero_division = 0).
#pragma once

#include <cstdint>
#include <vector>

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

// What the scores are made of: for 1,000 classes 3,000 numbers, where a confusion matrix has a
// million.
struct ClassCounts {
  int64_t items = 0;  // of the class
  int64_t taken = 0;  // predicted as the class
  int64_t right = 0;  // both
};

// `counts` are by label. REQUIRES: at least one item, and 0 <= positive < number of classes.
ClassificationScores classification_scores(const std::vector<ClassCounts>& counts,
                                           int64_t positive);
ClassificationScores classification_scores(const Confusion& confusion, int64_t positive);

}  // namespace lockstep

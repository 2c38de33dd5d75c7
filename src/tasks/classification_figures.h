// Names the figures by which an evaluation judges a classifier, the same for images and texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/classification_scores.h"
#include "tasks/task.h"

namespace lockstep {

// Appends f1, precision and recall, and these with the endings _macro, _weighted and _micro.
void append_class_metrics(std::vector<MetricKind>& kinds);

// Adds the metrics of append_class_metrics(). Those without an ending are of the positive class
// where there are two classes, else the macro means.
void add_class_metrics(const ClassificationScores& scores, int64_t classes, Evaluation& out);

// Returns the label of the class `wanted`; of an empty name, the second of two classes. Throws
// ConfigError, naming the configuration's `key` and the nearest class, when there is none of that
// name.
int64_t positive_label(const std::vector<std::string>& classes, const std::string& wanted,
                       const std::string& key);

}  // namespace lockstep

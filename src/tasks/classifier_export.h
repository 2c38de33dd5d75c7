// An image classifier as a folder that others use: torchvision, timm, transformers
// (docs/export.md#images).
#pragma once

#include <string>

#include "base/file.h"
#include "models/image_weight_names.h"
#include "tasks/image_classification.h"

namespace lockstep {

struct ClassifierExportOptions {
  fs::path folder;  // is made; holds no model yet
  WeightFlavour flavour = WeightFlavour::kHuggingFace;
  std::string precision = "fp32";  // or "bf16"
};

// With the classes' names and what evaluation does to an image. Returns the bytes of the weights.
// ConfigError: a network that the flavour has not, a folder that holds a model.
int64_t export_classifier(ImageClassification& task, const ClassifierExportOptions& options);

}  // namespace lockstep

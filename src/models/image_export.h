// Exports ResNets and ViTs in the form in which torchvision, timm or Hugging Face's transformers
// load them (docs/export.md#images).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/image_model.h"
#include "models/image_weight_names.h"
#include "nn/parameters.h"

namespace lockstep {

struct ImageExport {
  WeightFlavour flavour = WeightFlavour::kHuggingFace;
  std::string precision = "fp32";    // or "bf16": weights of two dimensions and more
  std::vector<std::string> classes;  // their names, by label
  int64_t size = 224;                // side in pixels, and shorter side before the crop
  int64_t resize = 256;
  std::string interpolation = "bilinear";
  std::vector<double> mean, std;
};

// Writes FOLDER/model.safetensors and, last, FOLDER/config.json (for huggingface also
// preprocessor_config.json), which models/classifier_folder.h reads. Creates the folder if needed.
// Returns the bytes of the weights. Throws ConfigError for a network that the flavour lacks, or a
// folder that holds a model.
int64_t write_image_model(const fs::path& folder, const ImageModel& model,
                          const Parameters& parameters, const ImageExport& what);

}  // namespace lockstep

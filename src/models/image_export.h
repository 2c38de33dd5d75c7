// ResNets and ViTs written to take away: as torchvision, timm or Hugging Face's transformers load
// them (docs/export.md#images).
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
  int64_t size = 224;                // pixels of a side, and of the shorter side before the crop
  int64_t resize = 256;
  std::string interpolation = "bilinear";
  std::vector<double> mean, std;
};

// FOLDER/model.safetensors and, written last, FOLDER/config.json (huggingface:
// preprocessor_config.json as well), which models/classifier_folder.h reads. The folder is made
// where needed. Returns the bytes of the weights. ConfigError for a network that the flavour has
// not, or a folder that has a model.
int64_t write_image_model(const fs::path& folder, const ImageModel& model,
                          const Parameters& parameters, const ImageExport& what);

}  // namespace lockstep

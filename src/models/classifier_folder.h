// What a folder with an image classifier of Hugging Face's transformers or of timm says beside its
// weights: config.json, preprocessor_config.json. models/image_export.h writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/image_model.h"

namespace lockstep {

struct ClassifierFolder {
  ImageModelConfig model;            // without what is for training alone
  std::vector<std::string> classes;  // by label
  int64_t size = 224;                // pixels of a side that the network sees
  int64_t resize = 256;              // shorter side before the centre crop; 0: not resized
  std::string interpolation = "bilinear";
  std::vector<double> mean, std;
  std::string precision = "fp32";  // or "bf16"
  std::vector<std::string> notes;  // what cannot be done as there, a line each
};

// True when the folder's config.json is of a ResNet or ViT by transformers or timm.
bool is_classifier_folder(const fs::path& folder);

// DataError: damaged, or a network of sizes that image_models() has not.
ClassifierFolder read_classifier_folder(const fs::path& folder);

}  // namespace lockstep

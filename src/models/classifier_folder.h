// Reads what the folder of an image classifier of Hugging Face's transformers or of timm contains
// besides its weights: config.json, preprocessor_config.json. models/image_export.h writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/image_model.h"

namespace lockstep {

struct ClassifierFolder {
  ImageModelConfig model;            // without settings that only training uses
  std::vector<std::string> classes;  // by label; empty: config.json names none
  int64_t size = 224;                // side of the network's input in pixels
  int64_t resize = 256;              // shorter side before the centre crop; 0: not resized
  std::string interpolation = "bilinear";
  std::vector<double> mean, std;
  std::string precision = "fp32";  // or "bf16"
  std::vector<std::string> notes;  // what lockstep does differently, one per line
};

// Whether the folder's config.json is of a ResNet or ViT by transformers or timm.
bool is_classifier_folder(const fs::path& folder);

// Throws DataError when the files are damaged, or for a network whose sizes image_models() lacks.
ClassifierFolder read_classifier_folder(const fs::path& folder);

}  // namespace lockstep

// Weights of ResNets and ViTs by other programs' names, read to begin from
// (docs/images.md#beginning-with-other-weights).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/image_model.h"
#include "models/image_weight_names.h"
#include "nn/parameters.h"

namespace lockstep {

// What came of reading; everything else of the network was read.
struct ImageWeightsRead {
  fs::path file;
  WeightFlavour flavour = WeightFlavour::kTorchvision;
  std::string holds;               // "a ResNet-50"
  int64_t tensors = 0;             // of the file that were used
  std::vector<std::string> notes;  // what a person should know, a line each: the head was replaced
};

// The safetensors file of `source`, a file or a folder with model.safetensors. Empty when there is
// none or it holds no weights of a ResNet or ViT by a known name.
fs::path image_weights_file(const fs::path& source);

// Weights and batch norm statistics from `source` (as above) into `parameters`, those of `model`;
// the names say themselves whose they are. F32, F16, BF16 and F64 are read. A head for another
// number of classes, or none, leaves ours as initialised; positions of another grid are
// interpolated. DataError, before anything was changed, names the first tensor that is missing, too
// many or of another shape; also for a config.json beside it that says of another network what
// shapes do not show.
ImageWeightsRead read_image_weights(const fs::path& source, const ImageModel& model,
                                    Parameters& parameters);

}  // namespace lockstep

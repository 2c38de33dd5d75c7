// Reads weights of ResNets and ViTs, under other programs' names, as initial weights
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

// What becomes of the last layer. By default its shape decides: one for another number of classes
// stays as initialised.
struct HeadPlan {
  bool fresh = false;         // as initialised, whatever is there
  std::vector<int64_t> rows;  // by label here: the label there; empty: the same
  std::string note;           // for the user; empty: nothing to say
};
// Compares the names of the classes there and here, by label. `rule` is model.head: "auto" keeps
// the last layer where the names agree, in any order, or say nothing (numbers, "LABEL_0"); "keep"
// keeps it for as many classes, whatever they are called; "new" does not.
HeadPlan plan_head(const std::vector<std::string>& there, const std::vector<std::string>& here,
                   const std::string& rule);

// The result of reading. Everything of the network that the notes do not mention was read.
struct ImageWeightsRead {
  fs::path file;
  WeightFlavour flavour = WeightFlavour::kTorchvision;
  std::string holds;               // "a ResNet-50"
  int64_t tensors = 0;             // used tensors of the file
  std::vector<std::string> notes;  // what the user should know, a line each: the head was replaced
};

// Returns the file with the weights of `source`, which is a safetensors file or a folder
// (find_weight_file()). Empty when there is none, or it holds no weights of a ResNet or ViT by a
// known name.
fs::path image_weights_file(const fs::path& source);

// Reads weights and batch norm statistics from `source` (as above) into `parameters`, which are
// those of `model`. The names tell whose weights they are. F32, F16, BF16 and F64 are read. If the
// head is absent or has another number of classes, ours stays as initialised; positions of another
// grid are interpolated. Throws DataError, before anything was changed, that names the first tensor
// that is missing, unknown or of another shape; also when a config.json beside the file describes
// another network whose shapes are the same.
ImageWeightsRead read_image_weights(const fs::path& source, const ImageModel& model,
                                    Parameters& parameters, const HeadPlan& head = {});

}  // namespace lockstep

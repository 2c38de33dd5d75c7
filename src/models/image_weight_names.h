// Translates the names that torchvision, timm and Hugging Face's transformers give to the
// weights of ResNets and ViTs. Our names are torchvision's for ResNets, which timm uses
// too, and timm's for ViTs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/weight_files.h"
#include "models/weight_transfer.h"
#include "nn/parameters.h"

namespace lockstep {

enum class WeightFlavour { kTorchvision, kTimm, kHuggingFace };
std::string_view flavour_name(WeightFlavour flavour);  // "torchvision", "timm", "huggingface"
WeightFlavour flavour_named(const std::string& name);  // throws ConfigError, with the nearest name

enum class ImageFamily { kResNet, kVit };
ImageFamily family_of(const Parameters& parameters);  // of a network of models/image_model.h

// Returns the places of all tensors of a network, in the order of its parameters and then its
// buffers. The norm after a mean over the patches, which only timm has, is written as the others'
// last norm.
std::vector<WeightPlace> weight_places(WeightFlavour flavour, const Parameters& parameters);

// The tensors of a file under the names that weight_places() gives: a prefix such as "module." is
// removed, the one that a Hugging Face model without a head lacks is added, and old names are
// replaced by current ones.
struct NamedTensors {
  ImageFamily family = ImageFamily::kResNet;
  WeightFlavour flavour = WeightFlavour::kTorchvision;
  std::map<std::string, const TensorEntry*> tensors;  // into the file, which must outlive them
  std::vector<std::string> order;                     // the names in the order of the file
};
// Whether the file holds a ResNet or a ViT by such names.
bool holds_image_weights(const WeightFiles& file);
// Throws DataError when it does not.
NamedTensors name_tensors(const WeightFiles& file);
// Describes the contents for messages: "a ResNet-50", "a ViT of width 768 with 12 blocks".
std::string describe_weights(const NamedTensors& named);

}  // namespace lockstep

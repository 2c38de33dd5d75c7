// How torchvision, timm and Hugging Face's transformers call the weights of ResNets and ViTs. Ours
// are torchvision's for ResNets, which are timm's as well, and timm's for ViTs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_file.h"
#include "models/weight_transfer.h"
#include "nn/parameters.h"

namespace lockstep {

enum class WeightFlavour { kTorchvision, kTimm, kHuggingFace };
std::string_view flavour_name(WeightFlavour flavour);  // "torchvision", "timm", "huggingface"
WeightFlavour flavour_named(const std::string& name);  // ConfigError, with the nearest name

enum class ImageFamily { kResNet, kVit };
ImageFamily family_of(const Parameters& parameters);  // of a network of models/image_model.h

// All of a network's, in the order of its parameters and then its buffers. The norm behind a mean
// over the patches, which timm alone has, is the others' last norm.
std::vector<WeightPlace> weight_places(WeightFlavour flavour, const Parameters& parameters);

// The tensors of a file by the names that weight_places() gives: without a prefix such as
// "module.", with the one that a Hugging Face model without a head lacks, and by today's names
// where older ones are in use.
struct NamedTensors {
  ImageFamily family = ImageFamily::kResNet;
  WeightFlavour flavour = WeightFlavour::kTorchvision;
  std::map<std::string, const TensorEntry*> tensors;  // into the file, which must outlive them
  std::vector<std::string> order;                     // of the names in the file
};
// True when the file holds a ResNet or a ViT by one of those names.
bool holds_image_weights(const TensorFile& file);
// DataError when it does not.
NamedTensors name_tensors(const TensorFile& file);
// What it holds, for messages: "a ResNet-50", "a ViT of width 768 with 12 blocks".
std::string describe_weights(const NamedTensors& named);

}  // namespace lockstep

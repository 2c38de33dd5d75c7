// Networks that classify images, by name. What a task sees of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/catalogue.h"
#include "config/fields.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct ImageForward {
  Numerics numerics;
  bool training = false;  // batch statistics, dropout and drop path on
  uint64_t seed = 1;      // with `step`, of dropout and drop path
  int64_t step = 0;
  // Set: batch norms have the statistics of all ranks' images (nn/batch_norm.h).
  std::function<void(torch::Tensor&)> sum_over_ranks;
  const torch::Tensor* rows = nullptr;  // int64 [n] keys of the images, for dropout and drop path
};

class ImageModel {
 public:
  virtual ~ImageModel() = default;
  // images [n, 3, height, width] of the compute type, channels last in memory -> [n, classes] of
  // the compute type. Throws ConfigError for images the network cannot take.
  virtual torch::Tensor logits(const torch::Tensor& images, const ImageForward& how) const = 0;
};

struct ImageModelConfig {  // section [model]
  std::string name = "resnet50";
  std::string stem = "imagenet";
  bool zero_init_residual = false;

  void describe(Fields& f) {
    f("name", &name, Any{}, "the network: resnet18, resnet34, resnet50, resnet101, resnet152");
    f("stem", &stem, OneOf{{"imagenet", "cifar"}},
      "the start of a ResNet: 7 x 7 with stride 2 and a max pool, or 3 x 3 alone for small images");
    f("zero_init_residual", &zero_init_residual, Any{},
      "ResNet: the last batch norm of every block starts with weight 0 (Goyal et al. 2017, "
      "section 5.1)");
  }
};

struct ImageModelShape {
  int64_t classes;
  int64_t size;  // pixels of a side in training
};
using ImageModelMaker = std::unique_ptr<ImageModel> (*)(const ImageModelConfig&,
                                                        const ImageModelShape&, Parameters&);
const Catalogue<ImageModelMaker>& image_models();

// Adds the network's weights to `parameters`; it can be used once parameters.allocate() has run.
// Throws ConfigError, with the nearest name, when there is none of that name.
std::unique_ptr<ImageModel> make_image_model(const ImageModelConfig& config, int64_t classes,
                                             int64_t size, Parameters& parameters);

}  // namespace lockstep

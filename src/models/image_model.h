// Declares networks that classify images: their interface to tasks, and their catalogue by name.
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
  uint64_t seed = 1;      // seed of dropout and drop path, with `step`
  int64_t step = 0;
  // When set, batch norms use the statistics of all ranks' images (nn/batch_norm.h).
  std::function<void(torch::Tensor&)> sum_over_ranks;
  const torch::Tensor* rows = nullptr;  // int64 [n] keys of the images, for dropout and drop path
};

class ImageModel {
 public:
  virtual ~ImageModel() = default;
  // images [n, 3, height, width] in the compute type, channels last in memory -> [n, classes] in
  // the compute type. Throws ConfigError for images that the network cannot take.
  virtual torch::Tensor logits(const torch::Tensor& images, const ImageForward& how) const = 0;
};

// A ResNet's width is at least kLeastWidth and below kWidthsEnd.
inline constexpr int64_t kLeastWidth = 8, kWidthsEnd = 1024;

struct ImageModelConfig {  // section [model]
  std::string name = "resnet50";
  std::string stem = "imagenet";
  int64_t width = 64;
  bool zero_init_residual = false;
  int64_t patch = 0;
  std::string pool = "class";
  double norm_epsilon = 1e-6;
  double dropout = 0;
  double attention_dropout = 0;
  double drop_path = 0;

  void describe(Fields& f) {
    f("name", &name, Any{},
      "the network: resnet18, resnet34, resnet50, resnet101, resnet152, vit_ti16, vit_s16, "
      "vit_b16, vit_l16");
    f("stem", &stem, OneOf{{"imagenet", "cifar"}},
      "the start of a ResNet: 7 x 7 with stride 2 and a max pool, or 3 x 3 alone for small images");
    f("width", &width, Between{kLeastWidth, kWidthsEnd},
      "ResNet: channels of the start and of the first stage, from stage to stage twice as many; "
      "torchvision's have 64");
    f("zero_init_residual", &zero_init_residual, Any{},
      "ResNet: the last batch norm of every block starts with weight 0 (Goyal et al. 2017, "
      "section 5.1)");
    f("patch", &patch, AtLeast{0},
      "ViT: pixels of a patch's side, 4 for images of 32; 0: as the name says");
    f("pool", &pool, OneOf{{"class", "mean"}},
      "ViT: the head reads the class token, or the mean of the patches");
    f("norm_epsilon", &norm_epsilon, Above{0},
      "ViT: added to the variance in layer norms; 1e-12 in many models for transformers");
    f("dropout", &dropout, Between{0, 1}, "ViT: of embedded tokens and feed-forward blocks");
    f("attention_dropout", &attention_dropout, Between{0, 1}, "ViT: of attention weights");
    f("drop_path", &drop_path, Between{0, 1},
      "ViT: share of images that leave out the branches of the last block; falls to 0 at the "
      "first");
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
// Throws ConfigError, with the nearest name, when there is no network of that name.
std::unique_ptr<ImageModel> make_image_model(const ImageModelConfig& config, int64_t classes,
                                             int64_t size, Parameters& parameters);

}  // namespace lockstep

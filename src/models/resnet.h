// Defines ResNets (He et al. 2016, "Deep residual learning for image recognition", table 1) in the
// form called v1.5: bottlenecks have their stride in the 3 x 3 convolution, not in the first 1 x 1.
// Names, order and initialisation of the weights are torchvision's.
#pragma once

#include <memory>
#include <vector>

#include "models/image_model.h"
#include "nn/conv_norm.h"
#include "nn/linear.h"

namespace lockstep {

struct ResNetBlock {
  struct Part {
    Convolution convolution;
    BatchNorm norm;
  };
  std::vector<Part> parts;     // two 3 x 3, or 1 x 1, 3 x 3, 1 x 1 with fourfold channels
  std::vector<Part> shortcut;  // one 1 x 1 where the shape changes, else empty
};

class ResNet : public ImageModel {
 public:
  // depth: 18, 34, 50, 101 or 152 (TORCH_CHECK). With stem = "cifar" the first convolution is 3 x 3
  // with stride 1 and no pool follows it.
  ResNet(const ImageModelConfig& config, int depth, int64_t classes, Parameters& parameters);
  ResNet(const ResNet&) = delete;
  ResNet& operator=(const ResNet&) = delete;

  torch::Tensor logits(const torch::Tensor& images, const ImageForward& how) const override;

  // Returns what the last layer reads: fp32 or compute type [n, width].
  torch::Tensor features(const torch::Tensor& images, const ImageForward& how) const;

 private:
  ResNetBlock::Part stem_;
  bool pools_;  // a max pool follows the stem
  std::vector<ResNetBlock> blocks_;
  Linear head_;
};

template <int kDepth>
std::unique_ptr<ImageModel> make_resnet(const ImageModelConfig& config,
                                        const ImageModelShape& shape, Parameters& parameters) {
  return std::make_unique<ResNet>(config, kDepth, shape.classes, parameters);
}

}  // namespace lockstep

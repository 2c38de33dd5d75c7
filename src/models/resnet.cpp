#include "models/resnet.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "nn/pooling.h"

namespace lockstep {
namespace {

struct Depth {
  int layers;
  std::array<int, 4> blocks;
  bool bottleneck;
};
constexpr Depth kDepths[] = {{18, {2, 2, 2, 2}, false},
                             {34, {3, 4, 6, 3}, false},
                             {50, {3, 4, 6, 3}, true},
                             {101, {3, 4, 23, 3}, true},
                             {152, {3, 8, 36, 3}, true}};

const Depth& find_depth(int layers) {
  for (const Depth& depth : kDepths) {
    if (depth.layers == layers) return depth;
  }
  TORCH_CHECK(false, "no ResNet-", layers);
}

struct Shape {  // of a convolution
  int64_t inputs, outputs, kernel, stride;
};

struct Names {
  std::string convolution, norm;
};

ResNetBlock::Part add_part(const Names& names, const Shape& shape, bool zero_weight,
                           Parameters& parameters) {
  ResNetBlock::Part part;
  part.convolution.weight =
      parameters.add(names.convolution + ".weight",
                     {shape.outputs, shape.inputs, shape.kernel, shape.kernel}, he_normal());
  part.convolution.stride = shape.stride;
  part.convolution.padding = shape.kernel / 2;
  part.norm = add_batch_norm(names.norm, shape.outputs, zero_weight, parameters);
  return part;
}

struct BlockPlace {
  std::string name;  // "layer1.0"
  int64_t inputs, width, stride;
};

ResNetBlock add_block(const BlockPlace& at, const Depth& depth, bool zero_last,
                      Parameters& parameters) {
  const int64_t outputs = depth.bottleneck ? 4 * at.width : at.width;
  std::vector<Shape> shapes;
  if (depth.bottleneck) {
    shapes = {
        {at.inputs, at.width, 1, 1}, {at.width, at.width, 3, at.stride}, {at.width, outputs, 1, 1}};
  } else {
    shapes = {{at.inputs, at.width, 3, at.stride}, {at.width, at.width, 3, 1}};
  }
  ResNetBlock block;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const Names names{at.name + ".conv" + number, at.name + ".bn" + number};
    const bool last = i + 1 == shapes.size();
    block.parts.push_back(add_part(names, shapes[i], last && zero_last, parameters));
  }
  if (at.stride != 1 || at.inputs != outputs) {
    const Names names{at.name + ".downsample.0", at.name + ".downsample.1"};
    const Shape shape{at.inputs, outputs, 1, at.stride};
    block.shortcut.push_back(add_part(names, shape, false, parameters));
  }
  return block;
}

}  // namespace

ResNet::ResNet(const ImageModelConfig& config, int layers, int64_t classes,
               Parameters& parameters) {
  const Depth& depth = find_depth(layers);
  pools_ = config.stem == "imagenet";
  const Shape first = pools_ ? Shape{3, config.width, 7, 2} : Shape{3, config.width, 3, 1};
  stem_ = add_part({"conv1", "bn1"}, first, false, parameters);
  int64_t channels = first.outputs;
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < depth.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const BlockPlace place{fmt::format("layer{}.{}", stage + 1, i), channels,
                             config.width << stage, stride};
      blocks_.push_back(add_block(place, depth, config.zero_init_residual, parameters));
      channels = blocks_.back().parts.back().convolution.outputs();
    }
  }
  // As in torch.nn.Linear, weight and bias are uniform within 1 / sqrt(inputs).
  const double bound = 1 / std::sqrt(static_cast<double>(channels));
  head_.weight = parameters.add("fc.weight", {classes, channels}, uniform(bound));
  head_.bias = parameters.add("fc.bias", {classes}, uniform(bound));
}

torch::Tensor ResNet::features(const torch::Tensor& images, const ImageForward& how) const {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 3, "ResNet: images are ", images.sizes(),
              ", expected [n, 3, height, width]");
  const BatchNormMode mode{how.numerics, how.training, how.sum_over_ranks};
  torch::Tensor x = conv_norm(images, stem_.convolution, stem_.norm, {}, mode);
  if (pools_) x = max_pool(x, how.numerics);
  for (const ResNetBlock& block : blocks_) {
    const auto gradient = std::make_shared<GradientSum>(2);  // of x: branch and shortcut read it
    torch::Tensor residual = x;
    for (const ResNetBlock::Part& part : block.shortcut) {
      const ConvNormEnd end{.relu = false, .x_gradient = gradient};
      residual = conv_norm(x, part.convolution, part.norm, end, mode);
    }
    torch::Tensor y = x;
    for (const ResNetBlock::Part& part : block.parts) {
      ConvNormEnd end;
      if (&part == &block.parts.front()) end.x_gradient = gradient;
      if (&part == &block.parts.back()) {
        end.residual = residual;
        if (block.shortcut.empty()) end.residual_gradient = gradient;
      }
      y = conv_norm(y, part.convolution, part.norm, end, mode);
    }
    x = y;
  }
  return average_pool(x, how.numerics);
}

torch::Tensor ResNet::logits(const torch::Tensor& images, const ImageForward& how) const {
  return linear(features(images, how), head_, how.numerics);
}

}  // namespace lockstep

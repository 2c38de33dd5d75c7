// A small ViT with random weights, for tests.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <memory>

#include "models/vit.h"

namespace lockstep {

inline constexpr VitShape kTinyVit{32, 3, 4, 48, 8};

// Moves all weights away from zero and one, so that a mistake with any of them shows.
inline void scatter_weights(Parameters& parameters, uint64_t seed) {
  torch::NoGradGuard no_grad;
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (const ParameterRef& p : parameters.list()) {
    p->value.add_(torch::empty(p->shape).uniform_(-0.2, 0.2, generator));
  }
  for (const BufferRef& b : parameters.buffer_list()) {
    b->value.add_(torch::empty(b->shape).uniform_(0, 0.2, generator));
  }
  parameters.refresh_low();
}

struct TinyVit {
  explicit TinyVit(const ImageModelConfig& config = {}, int64_t classes = 7, int64_t size = 32,
                   const VitShape& shape = kTinyVit, uint64_t seed = 1)
      : model(config, shape, {classes, size}, parameters) {
    parameters.allocate(torch::kCPU, torch::kBFloat16, seed);
    scatter_weights(parameters, seed + 1);
  }

  Parameters parameters;
  Vit model;
};

// Returns fp32 images [n, 3, size, size], channels last.
inline torch::Tensor random_images(int64_t n, int64_t size, uint64_t seed = 3) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return torch::randn({n, 3, size, size}, generator, torch::kFloat)
      .contiguous(torch::MemoryFormat::ChannelsLast);
}

}  // namespace lockstep

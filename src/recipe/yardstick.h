// Estimates how fast training will be on a machine, from runs that were measured on a reference
// machine (benchmarks/notes) and from how fast both compute matrix products. The estimate serves to
// choose the length of a run; `lockstep plan` measures the real speed.
#pragma once

#include <cstdint>
#include <string>

#include "recipe/facts.h"

namespace lockstep {

// The products per second of the reference machine, on which most of benchmarks/notes was measured:
// 2 cores of an AMD EPYC (Zen 4), in bf16 and fp32 by train/parts/machine_speed.h.
inline constexpr double kYardstickProducts = 400e9, kYardstickFp32 = 190e9;

// Returns how many times longer a step takes here than on the reference machine, where `products`
// is the share of its time that went into matrix products. The rest is bound by memory and vector
// units and is assumed to scale with the speed of fp32 products.
double times_yardstick(const MachineFacts& machine, double products);

// The size of a Transformer.
struct TransformerSize {
  int64_t d_model = 256, heads = 4, layers = 3, feed_forward = 1024;  // layers of each stack
  int64_t weights(int64_t vocabulary) const;
};
// Returns target tokens per second of all ranks together.
double translation_speed(const TransformerSize& size, int64_t vocabulary,
                         const MachineFacts& machine);

struct BertSize {
  int64_t layers = 6, width = 384, weights = 22'700'000;
};
// Returns texts per second for texts of `tokens` tokens.
double texts_speed(const BertSize& size, double tokens, const MachineFacts& machine);

struct ImageNetwork {
  std::string name = "resnet18", stem = "imagenet";
  int64_t size = 64;   // side in pixels
  int64_t width = 64;  // channels of the first stage
};
// Returns images per second. REQUIRES: resnet18, whole or half as wide, or resnet50
// with ImageNet's stem.
double images_speed(const ImageNetwork& network, const MachineFacts& machine);

// Returns "matrix products here are 0.97 times as fast as there", compared to the reference
// machine.
std::string compared_to_yardstick(const MachineFacts& machine);

// The functions below estimate the memory that a step needs, weights included: they show whether
// memory could be short.
double transformer_bytes(const TransformerSize& size, int64_t vocabulary, int64_t tokens);
double bert_bytes(const BertSize& size, double tokens);
double images_bytes(const ImageNetwork& network, int64_t images);

}  // namespace lockstep

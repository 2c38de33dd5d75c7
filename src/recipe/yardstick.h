// How fast training is likely to be on a machine, from runs that were measured on another one
// (benchmarks/notes) and from how fast both compute matrix products. An estimate to choose a
// length by: `lockstep plan` measures.
#pragma once

#include <cstdint>
#include <string>

#include "recipe/facts.h"

namespace lockstep {

// The measuring machine of most of benchmarks/notes, 2 cores of an AMD EPYC (Zen 4), in bf16 and
// fp32 by train/parts/machine_speed.h.
inline constexpr double kYardstickProducts = 400e9, kYardstickFp32 = 190e9;

// How many times the measuring machine's time a step takes here, when `products` is the share of
// that time that went into matrix products. The rest, which memory and vector units bound, is taken
// to go with products in fp32.
double times_yardstick(const MachineFacts& machine, double products);

// Weights of a Transformer, and what is in one.
struct TransformerSize {
  int64_t d_model = 256, heads = 4, layers = 3, feed_forward = 1024;  // layers of each stack
  int64_t weights(int64_t vocabulary) const;
};
// Target tokens a second, all ranks together.
double translation_speed(const TransformerSize& size, int64_t vocabulary,
                         const MachineFacts& machine);

struct BertSize {
  int64_t layers = 6, width = 384, weights = 22'700'000;
};
// Texts a second of so many tokens.
double texts_speed(const BertSize& size, double tokens, const MachineFacts& machine);

struct ImageNetwork {
  std::string name = "resnet18", stem = "imagenet";
  int64_t size = 64;  // pixels of a side
};
// Images a second. REQUIRES resnet18, or resnet50 with ImageNet's stem.
double images_speed(const ImageNetwork& network, const MachineFacts& machine);

// "this machine's matrix products are 0.97 times as fast" as the measuring one's.
std::string compared_to_yardstick(const MachineFacts& machine);

// What a step needs beside the weights, roughly: to see whether memory could be short.
double transformer_bytes(const TransformerSize& size, int64_t vocabulary, int64_t tokens);
double bert_bytes(const BertSize& size, double tokens);
double images_bytes(const ImageNetwork& network, int64_t images);

}  // namespace lockstep

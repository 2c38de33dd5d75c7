#include "report/answers/analysis_flops.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"

namespace lockstep {

namespace {

double numbers(const std::vector<int64_t>& shape) {
  double out = 1;
  for (int64_t n : shape) out *= static_cast<double>(n);
  return out;
}

bool starts(const std::string& text, const char* begin) { return text.starts_with(begin); }

// Returns the side, in pixels, of the output of a ResNet's convolution `name` (torchvision's
// names). The stem divides the side by 4 (7 x 7 and pool) or by 1, stage n by 2^(n - 1) more. In a
// stage's first bottleneck block, the convolution before the strided one sees the larger side.
double side_of(const std::string& name, bool small_stem, bool bottleneck, double pixels) {
  const double stem = small_stem ? 1 : 2, pooled = small_stem ? 1 : 4;
  if (!starts(name, "layer")) return pixels / stem;
  const int stage = name[5] - '1';
  const double side = pixels / pooled / std::pow(2.0, stage);
  const bool before = bottleneck && stage > 0 && name.find(".0.conv1.") != std::string::npos;
  return std::max(1.0, std::ceil(before ? side * 2 : side));
}

FlopCount resnet(const NamedShapes& weights, const StepWork& work) {
  bool small_stem = false, bottleneck = false;
  for (const auto& [name, shape] : weights) {
    if (name == "conv1.weight") small_stem = shape.at(2) == 3;
    if (name.ends_with(".conv3.weight")) bottleneck = true;
  }
  double forward = 0;
  for (const auto& [name, shape] : weights) {
    if (shape.size() == 4) {
      const double side = side_of(name, small_stem, bottleneck, work.pixels);
      forward += 2 * numbers(shape) * side * side;
    } else if (shape.size() == 2) {
      forward += 2 * numbers(shape);
    }
  }
  return {3 * forward * work.items,
          fmt::format("3 x {} flop an image forward x {} images", short_number(forward),
                      short_number(work.items)),
          "batch norms, activations, the pass to the pixels that is not needed"};
}

FlopCount vit(const NamedShapes& weights, const StepWork& work) {
  double blocks = 0, patch_numbers = 0, head = 0, patch = 16;
  for (const auto& [name, shape] : weights) {
    if (name == "patch_embed.proj.weight") {
      patch_numbers = numbers(shape);
      if (shape.size() == 4) patch = static_cast<double>(shape[2]);
      // [width, 3 patch^2]
      if (shape.size() == 2) patch = std::sqrt(static_cast<double>(shape[1]) / 3);
    } else if (starts(name, "blocks.") && shape.size() == 2) {
      blocks += numbers(shape);
    } else if (starts(name, "head") && shape.size() == 2) {
      head += numbers(shape);
    }
  }
  const double patches = std::pow(std::floor(work.pixels / patch), 2);
  const double forward = 2 * (blocks * (patches + 1) + patch_numbers * patches + head);
  return {3 * forward * work.items,
          fmt::format("6 x {} weights of the blocks x {:.0f} tokens x {} images, and the ends",
                      short_number(blocks), patches + 1, short_number(work.items)),
          "the products of attention itself, norms, activations"};
}

FlopCount translation(const NamedShapes& weights, const StepWork& work) {
  double encoder = 0, decoder = 0, output = 0;
  for (const auto& [name, shape] : weights) {
    if (shape.size() < 2) continue;
    const double n = numbers(shape);
    // What attention reads of the encoder is computed once for each source token.
    const bool of_memory = name.find(".cross.memory.") != std::string::npos;
    if (starts(name, "encoder.") || (starts(name, "decoder.") && of_memory)) {
      encoder += n;
    } else if (starts(name, "decoder.")) {
      decoder += n;
    } else {
      output = std::max(output, n);  // the embedding table is the output layer, too
    }
  }
  return {6 * (encoder * work.sources + (decoder + output) * work.targets),
          fmt::format("6 x ({} weights x {} source tokens + {} weights x {} target tokens)",
                      short_number(encoder), short_number(work.sources),
                      short_number(decoder + output), short_number(work.targets)),
          "the products of attention itself, norms, softmax, the optimizer"};
}

}  // namespace

std::optional<FlopCount> count_flops(const NamedShapes& weights, const StepWork& work) {
  bool conv = false, blocks = false, encoder = false, decoder = false;
  double matrices = 0;
  for (const auto& [name, shape] : weights) {
    conv = conv || (starts(name, "layer1.") && shape.size() == 4);
    blocks = blocks || starts(name, "patch_embed.");
    encoder = encoder || starts(name, "encoder.");
    decoder = decoder || starts(name, "decoder.");
    if (shape.size() == 2 && name.find("embedding") == std::string::npos)
      matrices += numbers(shape);
  }
  if (conv && work.pixels > 0) return resnet(weights, work);
  if (blocks && work.pixels > 0) return vit(weights, work);
  if (encoder && decoder && work.sources > 0) return translation(weights, work);
  const double tokens = std::max(work.sources, work.targets);
  if (matrices == 0 || tokens <= work.items) return std::nullopt;
  return FlopCount{
      6 * matrices * tokens,
      fmt::format("6 x {} weights x {} tokens", short_number(matrices), short_number(tokens)),
      "the products of attention itself, norms, softmax, the optimizer"};
}

}  // namespace lockstep

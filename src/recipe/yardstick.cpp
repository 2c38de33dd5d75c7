#include "recipe/yardstick.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

namespace {

// The least seconds per step on a GPU that waits for its host after every operation of a small
// network. This is an assumption: no GPU was measured.
constexpr double kGpuStepSeconds = 0.03;
constexpr double kGpuStepItems = 8192;  // tokens of such a step

// A weight has an fp32 value, gradient, two moments, average and a 16-bit copy (nn/parameters.h).
constexpr double kBytesOfWeight = 22;

double gpu_limit(double speed, const MachineFacts& machine, double items) {
  if (machine.gpus == 0) return speed;
  return machine.gpus * std::min(speed, items / kGpuStepSeconds);
}

}  // namespace

double times_yardstick(const MachineFacts& machine, double products) {
  return products * kYardstickProducts / machine.product_flops +
         (1 - products) * kYardstickFp32 / machine.fp32_flops;
}

int64_t TransformerSize::weights(int64_t vocabulary) const {
  const int64_t attention = 4 * d_model * d_model, inner = 2 * d_model * feed_forward;
  return vocabulary * d_model + layers * (attention + inner) + layers * (2 * attention + inner);
}

// Measured with Multi30k: 6,067 target tokens/s with 7.07 million weights. The products of a step
// are 42 MFLOP per token and take 0.105 of its 0.165 ms.
double translation_speed(const TransformerSize& size, int64_t vocabulary,
                         const MachineFacts& machine) {
  const double speed = 6067 * 7.07e6 / static_cast<double>(size.weights(vocabulary)) /
                       times_yardstick(machine, 0.64);
  return gpu_limit(speed, machine, kGpuStepItems);
}

// Measured with MiniLM-L6: SST-2 with 188 texts/s of 24 tokens, IMDB with 12.0 texts/s of 275
// tokens. The difference is due to attention, which grows with the length.
double texts_speed(const BertSize& size, double tokens, const MachineFacts& machine) {
  constexpr double kMiniLm = 6.0 * 384 * 384;
  const auto width = static_cast<double>(size.width);
  const double here = static_cast<double>(size.layers) * width * width / kMiniLm;
  const double seconds = 0.222e-3 * here * tokens * (1 + tokens / (2 * width));
  return gpu_limit(1 / (seconds * times_yardstick(machine, 0.64)), machine, kGpuStepItems / tokens);
}

// Measured: CIFAR-10 with a 3 x 3 stem at 212 images/s of 32 pixels, with half the width at 480;
// photos with ImageNet's stem at 392 of 64, with half the width at 1,070; ResNet-50 at 15.7 of 224.
// The work of a convolution is proportional to the area. All that was in bf16; networks in fp32
// reach two thirds of the speed that the machine's products promise (240 images of 64 pixels, 700
// with half the width, 9.8 of 224 with ResNet-50, on a Xeon without bf16).
double images_speed(const ImageNetwork& network, const MachineFacts& machine) {
  struct Measured {
    double images, size;
  };
  const bool half = network.width == 32;
  Measured m = network.stem == "cifar" ? Measured{half ? 480.0 : 212.0, 32}
                                       : Measured{half ? 1070.0 : 392.0, 64};
  if (network.name == "resnet50") m = {15.7, 224};
  const double side = static_cast<double>(network.size) / m.size;
  if (!machine.computes_bf16) m.images *= 0.66;
  const double speed = m.images / (side * side) / times_yardstick(machine, 0.7);
  return gpu_limit(speed, machine, 256);
}

std::string compared_to_yardstick(const MachineFacts& machine) {
  return fmt::format("matrix products here are {:.2g} times as fast as there",
                     machine.product_flops / kYardstickProducts);
}

// Measured: Transformer-base with 1,500 target tokens per step takes 2,023 MB, BERT-base with 2,048
// tokens 2,733 MB.
double transformer_bytes(const TransformerSize& size, int64_t vocabulary, int64_t tokens) {
  const int64_t of_vocabulary = vocabulary / 4;
  const auto held = static_cast<double>(2 * size.layers * size.d_model + of_vocabulary);
  return kBytesOfWeight * static_cast<double>(size.weights(vocabulary)) +
         40 * held * static_cast<double>(tokens);
}

double bert_bytes(const BertSize& size, double tokens) {
  return kBytesOfWeight * static_cast<double>(size.weights) +
         40 * static_cast<double>(size.layers * size.width) * tokens;
}

// Measured: ResNet-50 with 16 images of 224 pixels takes 1,276 MB, ResNet-18 with the 3 x 3 stem
// and 128 images of 32 pixels 793 MB.
double images_bytes(const ImageNetwork& network, int64_t images) {
  const double width = static_cast<double>(network.width) / 64;
  const double weights = network.name == "resnet50" ? 25.6e6 : 11.7e6 * width * width;
  const double of_pixel = (network.stem == "cifar" ? 4500 : 1100) * width;
  const auto side = static_cast<double>(network.size);
  return kBytesOfWeight * weights + of_pixel * side * side * static_cast<double>(images);
}

}  // namespace lockstep

// Batches of decoded, augmented, normalised images, made by worker threads. What comes out for an
// image depends on (seed, epoch, index, size) alone: not on threads, ranks or its place in a batch.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/images/image_set.h"
#include "data/images/images_config.h"
#include "formats/png_file.h"

namespace lockstep {

struct ImageTensors {
  torch::Tensor images;        // [n, 3, size, size], channels_last strides, normalised
  torch::Tensor labels;        // int64 [n]
  torch::Tensor other_labels;  // int64 [n], of mixup and CutMix; undefined without them
  torch::Tensor weights;       // fp32 [n], of `labels`; other_labels have 1 - weight; or undefined
  torch::Tensor indices;       // int64 [n], on the CPU: which images; those left out are missing
  int64_t broken = 0;          // images left out: n is the number asked for less these
};

struct ImageLoaderOptions {
  uint64_t seed = 1;
  int64_t threads = 1;                  // that decode, the caller's among them
  at::ScalarType compute = at::kFloat;  // kFloat, kBFloat16 or kHalf
  torch::Device device = torch::kCPU;   // tensors are on it; a GPU is fed from pinned memory
};

// Thread-safe. `set` must outlive the loader. Mixup and CutMix take their partner from the whole
// set, drawn by the key of (seed, epoch, index): batches and ranks do not matter, and the partner
// costs a second decoding.
class ImageLoader {
 public:
  ImageLoader(const ImageSet& set, const ImagesConfig& config, const ImageLoaderOptions& options);
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  // Throws DataError, with its name, for an image that cannot be decoded (images.broken = "fail")
  // and ConfigError for one that is smaller than the crop.
  ImageTensors train_batch(std::span<const int64_t> indices, int64_t epoch, int64_t size) const;
  // Without chance: shorter side to eval_resize * size / config.size, centre crop of `size`.
  ImageTensors eval_batch(std::span<const int64_t> indices, int64_t size) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What evaluation sees of one encoded file, before it is normalised: [size, size] pixels. `name` is
// for the DataError.
RgbImage evaluation_pixels(std::span<const std::byte> file, const std::string& name,
                           const ImagesConfig& config, int64_t size);

// One encoded file with the transform of evaluation: [1, 3, size, size] on the CPU, channels_last
// strides. `name` is for the DataError.
torch::Tensor evaluation_image(std::span<const std::byte> file, const std::string& name,
                               const ImagesConfig& config, int64_t size, at::ScalarType compute);

}  // namespace lockstep

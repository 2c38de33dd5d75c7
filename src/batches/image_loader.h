// Makes batches of decoded, augmented, normalized images on worker threads. The result for an image
// depends only on (seed, epoch, index, size), not on threads, ranks or its position in a batch.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/images/image_set.h"
#include "data/images/images_config.h"
#include "formats/png_file.h"

namespace lockstep {

struct ImageTensors {
  torch::Tensor images;        // [n, 3, size, size], channels_last strides, normalized
  torch::Tensor labels;        // int64 [n]
  torch::Tensor other_labels;  // int64 [n], of mixup and CutMix; else undefined
  torch::Tensor weights;  // fp32 [n], of `labels`; other_labels have 1 - weight; else undefined
  torch::Tensor indices;  // int64 [n], on the CPU: numbers of the images that were kept
  int64_t broken = 0;     // images left out: n is the requested number minus these
};

struct ImageLoaderOptions {
  uint64_t seed = 1;
  int64_t threads = 1;                  // decoding threads, including the caller's
  at::ScalarType compute = at::kFloat;  // kFloat, kBFloat16 or kHalf
  torch::Device device = torch::kCPU;   // of the tensors; for a GPU the host memory is pinned
  std::vector<int32_t> partners = {};   // images that mixup and CutMix draw from; empty: all
};

// Thread-safe. `set` must outlive the loader. Mixup and CutMix take the partner of an image from
// the whole set (or of ImageLoaderOptions::partners), drawn with the key of (seed, epoch, index):
// the choice does not depend on batches or ranks. The partner costs a second decoding.
class ImageLoader {
 public:
  ImageLoader(const ImageSet& set, const ImagesConfig& config, const ImageLoaderOptions& options);
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  // Throws DataError with the name of an image that cannot be decoded (images.broken = "fail") and
  // ConfigError for an image that is smaller than the crop.
  ImageTensors train_batch(std::span<const int64_t> indices, int64_t epoch, int64_t size) const;
  // Returns the images that train_batch() reads for these, in its order: with their partners.
  std::vector<int64_t> read_for(std::span<const int64_t> indices, int64_t epoch) const;
  // Makes a batch without randomness: the shorter side is resized to eval_resize * size /
  // config.size, then the centre is cropped to `size`.
  ImageTensors eval_batch(std::span<const int64_t> indices, int64_t size) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the pixels that evaluation sees of one encoded file, before normalization: [size, size].
// `name` is for the DataError.
RgbImage evaluation_pixels(std::span<const std::byte> file, const std::string& name,
                           const ImagesConfig& config, int64_t size);

// Returns one encoded file with the evaluation transform: [1, 3, size, size] on the CPU,
// channels_last strides. `name` is for the DataError.
torch::Tensor evaluation_image(std::span<const std::byte> file, const std::string& name,
                               const ImagesConfig& config, int64_t size, at::ScalarType compute);

}  // namespace lockstep

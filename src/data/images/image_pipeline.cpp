#include "data/images/image_pipeline.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

namespace {

// The streams of random numbers of one image. They are separate, so that turning on one option does
// not change the numbers of the others.
enum Stream : uint64_t { kCrop = 1, kFlip, kColours, kOperations };

KeyedRandom stream(uint64_t key, Stream which) { return KeyedRandom(combine_keys(key, which)); }

// Returns by how much the decoder may shrink the image so that `size` is still not larger.
int64_t reduction_for(const ImageInfo& info, const PixelBox& box, int64_t size) {
  if (info.format != "JPEG" || info.cmyk) return 1;
  for (int64_t n : {8, 4, 2}) {
    if (box.width >= n * size && box.height >= n * size) return n;
  }
  return 1;
}

}  // namespace

ImagePipeline::ImagePipeline(const ImagesConfig& config)
    : config_(config), filter_(resize_filter(config.interpolation)) {}

void ImagePipeline::plan(ResizeAxis& axis, int64_t begin, int64_t length, int64_t reduction,
                         int64_t size) const {
  auto n = static_cast<double>(reduction);
  ResizeSpan span{.begin = static_cast<double>(begin) / n,
                  .end = static_cast<double>(begin + length) / n,
                  .size = size,
                  .outputs = size};
  axis.plan(span, begin / reduction, (begin + length + reduction - 1) / reduction, filter_);
}

void ImagePipeline::resized_crop(const PixelBox& box, int64_t size, bool mirror, uint8_t* out) {
  int64_t reduction = config_.exact_decoding ? 1 : reduction_for(decoder_.info(), box, size);
  plan(resizer_.x, box.x, box.width, reduction, size);
  plan(resizer_.y, box.y, box.height, reduction, size);
  resizer_.resize(decoder_.decode(box, reduction), mirror, out, 3 * size);
}

// `box` may exceed the image; pixels outside are black.
void ImagePipeline::padded_crop(const PixelBox& box, int64_t size, bool mirror, uint8_t* out) {
  const ImageInfo& info = decoder_.info();
  PixelBox part{std::max<int64_t>(0, box.x), std::max<int64_t>(0, box.y)};
  part.width = std::min(info.width, box.x + box.width) - part.x;
  part.height = std::min(info.height, box.y + box.height) - part.y;
  int64_t stride = 4 * box.width;
  padded_.assign(static_cast<std::size_t>(stride * box.height), 0);
  if (part.width > 0 && part.height > 0) {
    DecodedPixels from = decoder_.decode(part);
    for (int64_t y = 0; y < part.height; ++y) {
      std::memcpy(padded_.data() + (part.y - box.y + y) * stride + 4 * (part.x - box.x),
                  from.pixels + (part.y - from.box.y + y) * from.stride + 4 * (part.x - from.box.x),
                  static_cast<std::size_t>(4 * part.width));
    }
  }
  PixelBox whole{0, 0, box.width, box.height};
  plan(resizer_.x, 0, box.width, 1, size);
  plan(resizer_.y, 0, box.height, 1, size);
  resizer_.resize({.pixels = padded_.data(), .stride = stride, .box = whole}, mirror, out,
                  3 * size);
}

void ImagePipeline::training(std::span<const std::byte> file, uint64_t key, int64_t size,
                             uint8_t* out) {
  const ImageInfo& info = decoder_.open(file);
  KeyedRandom crop = stream(key, kCrop);
  bool mirror = stream(key, kFlip).chance(config_.flip);
  if (config_.augmentation == "random_crop") {
    padded_crop(random_padded_crop(info.width, info.height, config_.size, config_.padding, crop),
                size, mirror, out);
  } else {
    resized_crop(random_resized_crop(info.width, info.height, config_, crop), size, mirror, out);
  }
  ByteImage image{out, size, size};
  if (config_.brightness > 0 || config_.contrast > 0 || config_.saturation > 0 || config_.hue > 0) {
    KeyedRandom colours = stream(key, kColours);
    jitter_colours(image, config_, colours);
  }
  if (config_.randaugment_operations > 0) {
    KeyedRandom operations = stream(key, kOperations);
    apply_randaugment(image, config_, operations, space_);
  }
}

void ImagePipeline::evaluation(std::span<const std::byte> file, int64_t resize, int64_t size,
                               uint8_t* out) {
  const ImageInfo& info = decoder_.open(file);
  CenterCrop crop = center_crop(info.width, info.height, resize, size);
  resizer_.x.plan({0, static_cast<double>(info.width), crop.width, crop.x, size}, 0, info.width,
                  filter_);
  resizer_.y.plan({0, static_cast<double>(info.height), crop.height, crop.y, size}, 0, info.height,
                  filter_);
  PixelBox needed{resizer_.x.first(), resizer_.y.first(), resizer_.x.last() - resizer_.x.first(),
                  resizer_.y.last() - resizer_.y.first()};
  resizer_.resize(decoder_.decode(needed), false, out, 3 * size);
}

}  // namespace lockstep

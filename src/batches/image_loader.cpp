#include "batches/image_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/worker_pool.h"
#include "data/images/image_pipeline.h"
#include "kernels/kernel_table.h"
#include "nn/upload.h"

namespace lockstep {

namespace {

// The numbers must differ from the streams of image_pipeline.cpp.
enum Stream : uint64_t { kMixing = 101, kPartner, kErasing };

// Expresses (pixel / 255 - mean) / std as a factor and an addend for each byte of a row.
struct Normalization {
  int64_t size;  // of a row and of a column
  std::vector<float> scale, shift;

  Normalization(const ImagesConfig& config, int64_t side) : size(side) {
    for (int64_t i = 0; i < 3 * size; ++i) {
      double mean = pixel_mean(config)[i % 3], deviation = pixel_deviation(config)[i % 3];
      scale.push_back(static_cast<float>(1 / (255 * deviation)));
      shift.push_back(static_cast<float>(-mean / deviation));
    }
  }
};

// Bytes of an image, mixed with those of another.
struct MixedPixels {
  const uint8_t* pixels;
  const uint8_t* other = nullptr;  // null: none
  float weight = 1;                // of the first
};

template <class T>
void normalize_rows(void (*kernel)(const NormalizeArgs<T>&), const Normalization& how,
                    const MixedPixels& from, void* out) {
  int64_t n = 3 * how.size;
  NormalizeArgs<T> args{
      .weight = from.weight, .scale = how.scale.data(), .shift = how.shift.data(), .n = n};
  for (int64_t row = 0; row < how.size; ++row) {
    args.x = from.pixels + row * n;
    args.other = from.other == nullptr ? nullptr : from.other + row * n;
    args.out = static_cast<T*>(out) + row * n;
    kernel(args);
  }
}

void normalize(at::ScalarType type, const Normalization& how, const MixedPixels& from, void* out) {
  const ImageKernels& kernel = kernels().image;
  if (type == at::kFloat) {
    normalize_rows(kernel.normalize_fp32, how, from, out);
  } else if (type == at::kBFloat16) {
    normalize_rows(kernel.normalize_bf16, how, from, out);
  } else {
    normalize_rows(kernel.normalize_fp16, how, from, out);
  }
}

// Writes zeros, the mean colour after normalization, like torchvision.
void erase(const ErasedBox& box, int64_t size, std::size_t element_bytes, std::byte* image) {
  std::size_t pixel = 3 * element_bytes;
  for (int64_t y = box.y; y < box.y + box.height; ++y) {
    std::memset(image + static_cast<std::size_t>(y * size + box.x) * pixel, 0,
                static_cast<std::size_t>(box.width) * pixel);
  }
}

// Returns the part of the partner that CutMix shows: an area of 1 - share around a random centre,
// clipped at the borders (Yun et al. 2019, section 3.1).
PixelBox cutmix_box(int64_t size, double share, KeyedRandom& random) {
  auto side = static_cast<int64_t>(static_cast<double>(size) * std::sqrt(1 - share));
  int64_t x = random.below(size), y = random.below(size);
  int64_t left = std::max<int64_t>(0, x - side / 2), right = std::min(size, x + side / 2);
  int64_t top = std::max<int64_t>(0, y - side / 2), bottom = std::min(size, y + side / 2);
  return {left, top, right - left, bottom - top};
}

void paste(const uint8_t* from, const PixelBox& box, int64_t size, uint8_t* to) {
  for (int64_t y = box.y; y < box.y + box.height; ++y) {
    std::memcpy(to + 3 * (y * size + box.x), from + 3 * (y * size + box.x),
                static_cast<std::size_t>(3 * box.width));
  }
}

// The buffers that one thread uses at a time.
struct Worker {
  explicit Worker(const ImagesConfig& config) : pipeline(config) {}
  ImagePipeline pipeline;
  std::vector<std::byte> file;
  std::vector<uint8_t> pixels, other;
};

struct Mixing {
  int64_t partner = -1;  // -1: none
  bool patch = false;    // CutMix
  double weight = 1;     // of the image itself; its partner has 1 - weight
  PixelBox box;
};

}  // namespace

struct ImageLoader::Impl {
  const ImageSet& set;
  ImagesConfig config;
  ImageLoaderOptions options;
  WorkerPool pool;
  std::mutex mutex;  // guards `idle`
  std::vector<std::unique_ptr<Worker>> idle;

  Impl(const ImageSet& s, const ImagesConfig& c, const ImageLoaderOptions& o)
      : set(s), config(c), options(o), pool(std::max<int64_t>(1, o.threads)) {}

  bool mixes() const { return config.mixup > 0 || config.cutmix > 0; }

  uint64_t key(int64_t epoch, int64_t index) const {
    return combine_keys(combine_keys(options.seed, static_cast<uint64_t>(epoch)),
                        static_cast<uint64_t>(index));
  }

  std::unique_ptr<Worker> take_worker() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Worker>(config);
    std::unique_ptr<Worker> out = std::move(idle.back());
    idle.pop_back();
    return out;
  }
  void give_back(std::unique_ptr<Worker> worker) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(worker));
  }

  // Returns false if the image cannot be decoded and is to be left out. A file that cannot be read
  // always throws: a disk or network that fails for a while must not shrink the data set.
  template <typename Make>
  bool made(int64_t index, Worker& worker, const Make& make) const {
    std::span<const std::byte> file = set.bytes(index, worker.file);
    try {
      make(file);
      return true;
    } catch (DataError& error) {
      if (config.broken == "skip") return false;
      error.add_context("decoding " + set.name(index));
      error.set_advice("images.broken = \"skip\" leaves such images out and counts them");
      throw;
    } catch (ConfigError& error) {
      error.add_context("cutting " + set.name(index));
      throw;
    }
  }

  // The first draw of an image's mixing.
  int64_t partner(KeyedRandom& random) const {
    if (options.partners.empty()) return random.below(set.size());
    return options.partners[static_cast<std::size_t>(random.below(std::ssize(options.partners)))];
  }

  Mixing mixing(uint64_t key, int64_t size) const {
    Mixing out;
    if (!mixes()) return out;
    KeyedRandom random(combine_keys(key, kMixing));
    out.partner = partner(random);
    bool both = config.mixup > 0 && config.cutmix > 0;
    out.patch = both ? random.chance(0.5) : config.cutmix > 0;
    double alpha = out.patch ? config.cutmix : config.mixup;
    out.weight = random.beta(alpha, alpha);
    if (!out.patch) return out;
    out.box = cutmix_box(size, out.weight, random);
    out.weight =
        1 - static_cast<double>(out.box.width * out.box.height) / static_cast<double>(size * size);
    return out;
  }

  struct Slot {  // where the results for an image go
    std::byte* image;
    int64_t* other_label = nullptr;
    float* weight = nullptr;
  };

  bool train_item(int64_t index, int64_t epoch, const Normalization& how, const Slot& slot,
                  Worker& worker) const {
    const int64_t size = how.size;
    auto bytes = static_cast<std::size_t>(3 * size * size);
    worker.pixels.resize(bytes);
    uint64_t own = key(epoch, index);
    auto make = [&](uint64_t with, std::vector<uint8_t>& pixels) {
      return [&, with](std::span<const std::byte> file) {
        if (config.augmentation == "none") {
          worker.pipeline.evaluation(file, resize_for(size), size, pixels.data());
        } else {
          worker.pipeline.training(file, with, size, pixels.data());
        }
      };
    };
    if (!made(index, worker, make(own, worker.pixels))) return false;
    Mixing mix = mixing(own, size);
    const uint8_t* other = nullptr;
    if (mix.partner >= 0) {
      worker.other.resize(bytes);
      bool whole = made(mix.partner, worker, make(combine_keys(own, kPartner), worker.other));
      if (!whole) mix = {.partner = index};  // no mixing
      if (whole && mix.patch) paste(worker.other.data(), mix.box, size, worker.pixels.data());
      if (whole && !mix.patch) other = worker.other.data();
      *slot.other_label = set.label(mix.partner);
      *slot.weight = static_cast<float>(mix.weight);
    }
    normalize(options.compute, how, {worker.pixels.data(), other, static_cast<float>(mix.weight)},
              slot.image);
    if (config.erasing > 0) {
      KeyedRandom random(combine_keys(own, kErasing));
      erase(random_erasing(size, config.erasing, random), size, c10::elementSize(options.compute),
            slot.image);
    }
    return true;
  }

  bool eval_item(int64_t index, const Normalization& how, const Slot& slot, Worker& worker) const {
    const int64_t size = how.size;
    worker.pixels.resize(static_cast<std::size_t>(3 * size * size));
    bool whole = made(index, worker, [&](std::span<const std::byte> file) {
      worker.pipeline.evaluation(file, resize_for(size), size, worker.pixels.data());
    });
    if (whole) {
      normalize(options.compute, how, {worker.pixels.data()}, slot.image);
    }
    return whole;
  }

  int64_t resize_for(int64_t size) const {
    return (config.eval_resize * size + config.size / 2) / config.size;
  }

  torch::TensorOptions pinned(at::ScalarType type) const {
    return torch::TensorOptions().dtype(type).pinned_memory(!options.device.is_cpu());
  }

  using Item = std::function<bool(int64_t index, const Slot&, Worker&)>;
  ImageTensors batch(std::span<const int64_t> indices, int64_t size, bool mixed, const Item& item);
  void leave_out(const std::vector<char>& made, ImageTensors& out) const;
  void move_to_device(ImageTensors& out) const;
};

// Removes the rows of images that were left out.
void ImageLoader::Impl::leave_out(const std::vector<char>& made, ImageTensors& out) const {
  std::vector<int64_t> kept;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] != 0) kept.push_back(static_cast<int64_t>(i));
  }
  out.broken = static_cast<int64_t>(made.size() - kept.size());
  if (out.broken == 0) return;
  torch::Tensor rows = torch::tensor(kept, torch::kLong);
  for (torch::Tensor* t : {&out.labels, &out.other_labels, &out.weights, &out.indices}) {
    if (t->defined()) *t = t->index_select(0, rows);
  }
  torch::Tensor images =
      torch::empty({static_cast<int64_t>(kept.size()), 3, out.images.size(2), out.images.size(3)},
                   pinned(options.compute), torch::MemoryFormat::ChannelsLast);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    images[static_cast<int64_t>(i)].copy_(out.images[kept[i]]);
  }
  out.images = images;
}

void ImageLoader::Impl::move_to_device(ImageTensors& out) const {
  for (torch::Tensor* t : {&out.images, &out.labels, &out.other_labels, &out.weights}) {
    if (t->defined()) *t = upload(*t, options.device);
  }
}

ImageTensors ImageLoader::Impl::batch(std::span<const int64_t> indices, int64_t size, bool mixed,
                                      const Item& item) {
  auto n = static_cast<int64_t>(indices.size());
  ImageTensors out;
  out.images =
      torch::empty({n, 3, size, size}, pinned(options.compute), torch::MemoryFormat::ChannelsLast);
  out.labels = torch::empty({n}, pinned(torch::kLong));
  out.indices = torch::empty({n}, torch::kLong);
  if (mixed) {
    out.other_labels = torch::empty({n}, pinned(torch::kLong));
    out.weights = torch::empty({n}, pinned(torch::kFloat));
  }
  auto* images = static_cast<std::byte*>(out.images.data_ptr());
  std::size_t image_bytes =
      static_cast<std::size_t>(3 * size * size) * c10::elementSize(options.compute);
  std::vector<char> whole(indices.size(), 0);
  pool.run(n, [&](int64_t i) {
    int64_t index = indices[static_cast<std::size_t>(i)];
    out.labels.data_ptr<int64_t>()[i] = set.label(index);
    out.indices.data_ptr<int64_t>()[i] = index;
    Slot slot{.image = images + static_cast<std::size_t>(i) * image_bytes};
    if (mixed) {
      slot.other_label = out.other_labels.data_ptr<int64_t>() + i;
      slot.weight = out.weights.data_ptr<float>() + i;
    }
    std::unique_ptr<Worker> worker = take_worker();
    whole[static_cast<std::size_t>(i)] = item(index, slot, *worker) ? 1 : 0;
    give_back(std::move(worker));
  });
  leave_out(whole, out);
  move_to_device(out);
  return out;
}

ImageLoader::ImageLoader(const ImageSet& set, const ImagesConfig& config,
                         const ImageLoaderOptions& options)
    : impl_(std::make_unique<Impl>(set, config, options)) {
  check_images_config(config);
  if (options.compute != at::kFloat && options.compute != at::kBFloat16 &&
      options.compute != at::kHalf) {
    throw std::invalid_argument("images are made as fp32, bf16 or fp16");
  }
}
ImageLoader::~ImageLoader() = default;

ImageTensors ImageLoader::train_batch(std::span<const int64_t> indices, int64_t epoch,
                                      int64_t size) const {
  Normalization how(impl_->config, size);
  return impl_->batch(indices, size, impl_->mixes(),
                      [&](int64_t index, const Impl::Slot& slot, Worker& worker) {
                        return impl_->train_item(index, epoch, how, slot, worker);
                      });
}

std::vector<int64_t> ImageLoader::read_for(std::span<const int64_t> indices, int64_t epoch) const {
  std::vector<int64_t> out;
  for (int64_t index : indices) {
    out.push_back(index);
    if (!impl_->mixes()) continue;
    KeyedRandom random(combine_keys(impl_->key(epoch, index), kMixing));
    out.push_back(impl_->partner(random));
  }
  return out;
}

ImageTensors ImageLoader::eval_batch(std::span<const int64_t> indices, int64_t size) const {
  Normalization how(impl_->config, size);
  return impl_->batch(indices, size, false,
                      [&](int64_t index, const Impl::Slot& slot, Worker& worker) {
                        return impl_->eval_item(index, how, slot, worker);
                      });
}

RgbImage evaluation_pixels(std::span<const std::byte> file, const std::string& name,
                           const ImagesConfig& config, int64_t size) {
  RgbImage out(size, size);
  ImagePipeline pipeline(config);
  const int64_t resize = (config.eval_resize * size + config.size / 2) / config.size;
  try {
    pipeline.evaluation(file, resize, size, out.pixels.data());
  } catch (Error& error) {
    error.add_context("decoding " + name);
    throw;
  }
  return out;
}

torch::Tensor evaluation_image(std::span<const std::byte> file, const std::string& name,
                               const ImagesConfig& config, int64_t size, at::ScalarType compute) {
  torch::Tensor out = torch::empty({1, 3, size, size}, torch::TensorOptions().dtype(compute),
                                   torch::MemoryFormat::ChannelsLast);
  const RgbImage seen = evaluation_pixels(file, name, config, size);
  normalize(compute, Normalization(config, size), {seen.pixels.data()}, out.data_ptr());
  return out;
}

}  // namespace lockstep

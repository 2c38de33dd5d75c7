#include "nn/gpu_blocks.h"

#include <algorithm>

#include "nn/fused.h"

namespace lockstep::detail {
namespace {

// Whether the GPU may read groups of channels of all tensors.
bool is_grouped(int64_t channels, std::initializer_list<torch::Tensor> memory) {
  if (channels % kGroupedChannels != 0) return false;
  return std::all_of(memory.begin(), memory.end(), [](const torch::Tensor& t) {
    if (!t.defined()) return true;
    const auto address = reinterpret_cast<uintptr_t>(t.const_data_ptr());
    return address % static_cast<uintptr_t>(t.element_size() * kGroupedChannels) == 0;
  });
}

}  // namespace

GpuBlocks gpu_blocks(const torch::Tensor& rows, std::initializer_list<torch::Tensor> memory,
                     bool sums) {
  // A million elements have as many threads as a large GPU runs at a time, times 8 for their
  // groups; the sums of parts that are too short would be more than what they are sums of.
  constexpr int64_t kElementsAPixel = int64_t{1} << 20, kFewPixels = 4, kManyPixels = 64;
  GpuBlocks out{};
  PixelBlocks& blocks = out.blocks;
  blocks.pixels = rows.size(0);
  blocks.channels = rows.size(1);
  blocks.part_pixels = std::clamp(rows.numel() / kElementsAPixel, kFewPixels, kManyPixels);
  blocks.grouped = is_grouped(blocks.channels, memory);
  const int64_t groups = blocks.channels / (blocks.grouped ? kGroupedChannels : 1);
  blocks.parts = std::max<int64_t>(1, kBlockSlots / std::max<int64_t>(1, groups));
  const int64_t block_pixels = blocks.parts * blocks.part_pixels;
  blocks.count = (blocks.pixels + block_pixels - 1) / block_pixels;
  if (sums) {
    out.sums = torch::empty({blocks.count, 2, blocks.channels}, rows.options().dtype(at::kFloat));
    blocks.sums = out.sums.data_ptr<float>();
  }
  return out;
}

void add_column_sums_on_gpu(const torch::Tensor& gradient, const torch::Tensor& x) {
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GpuBlocks blocks = gpu_blocks(x, {x}, /*sums=*/true);
    const int64_t count = blocks.blocks.count, width = x.size(1);
    on_gpu(x)->typed<T>().pixel_sums({pointer<T>(x), nullptr, blocks.blocks}, count);
    on_gpu(x)->add_totals(
        {pointer<float>(blocks.sums), count, width, pointer<float>(gradient), nullptr}, width);
  });
}

}  // namespace lockstep::detail

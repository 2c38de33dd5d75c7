// Kernels for images (kernels/image_isa.cpp): every instruction set of this machine gives the bits
// of a plain loop.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/instruction_sets.h"

namespace lockstep {
namespace {

struct Axis {
  std::vector<int32_t> begins, counts, weights;
  int64_t taps;
  ResizeAxisArgs args() const {
    return {static_cast<int64_t>(begins.size()), taps, begins.data(), counts.data(),
            weights.data()};
  }
};

// Any weights that sum to one, some negative.
Axis random_axis(int64_t in, int64_t out, std::mt19937& random) {
  Axis axis{.taps = std::min<int64_t>(in, 5)};
  for (int64_t i = 0; i < out; ++i) {
    int64_t count = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(axis.taps));
    axis.counts.push_back(static_cast<int32_t>(count));
    axis.begins.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(in - count + 1)));
    int32_t rest = 1 << 22;
    for (int64_t k = 0; k < axis.taps; ++k) {
      int32_t weight = static_cast<int32_t>(random() % (1 << 22)) - (1 << 20);
      if (k + 1 >= count) weight = k + 1 == count ? rest : 0;
      rest -= weight;
      axis.weights.push_back(weight);
    }
  }
  return axis;
}

uint8_t weighted(const Axis& axis, int64_t i, const uint8_t* first, int64_t stride) {
  int64_t sum = 1 << 21;
  for (int64_t k = 0; k < axis.counts[i]; ++k) {
    sum += static_cast<int64_t>(first[(axis.begins[i] + k) * stride]) *
           axis.weights[i * axis.taps + k];
  }
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> 22, 0, 255));
}

std::vector<uint8_t> random_bytes(int64_t n, std::mt19937& random) {
  std::vector<uint8_t> out(static_cast<std::size_t>(n));
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

TEST(ImageKernels, ResizeRows) {
  std::mt19937 random(1);
  for (auto [rows, in, size] : {std::tuple{1, 1, 1}, {8, 9, 5}, {19, 33, 40}, {7, 64, 16}}) {
    Axis axis = random_axis(in, size, random);
    std::vector<uint8_t> pixels = random_bytes(4 * rows * in, random);
    for (bool mirror : {false, true}) {
      for (const Kernels* table : kernels_here()) {
        int64_t stride = 3 * size + 1;
        std::vector<uint8_t> out(static_cast<std::size_t>(rows * stride)),
            scratch(static_cast<std::size_t>(resize_rows_scratch(in)));
        table->image.resize_rows(
            {axis.args(), pixels.data(), 4 * in, in, out.data(), stride, mirror, scratch.data()}, 0,
            rows);
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t x = 0; x < size; ++x) {
            for (int64_t c = 0; c < 3; ++c) {
              uint8_t wanted =
                  weighted(axis, mirror ? size - 1 - x : x, pixels.data() + row * 4 * in + c, 4);
              ASSERT_EQ(out[row * stride + 3 * x + c], wanted) << table->isa << " " << rows;
            }
          }
        }
      }
    }
  }
}

TEST(ImageKernels, ResizeColumns) {
  std::mt19937 random(2);
  for (auto [in, size, width] : {std::tuple{1, 1, 1}, {9, 5, 31}, {20, 33, 100}, {64, 8, 672}}) {
    Axis axis = random_axis(in, size, random);
    std::vector<uint8_t> bytes = random_bytes(in * width, random);
    for (const Kernels* table : kernels_here()) {
      std::vector<uint8_t> out(static_cast<std::size_t>(size * width));
      table->image.resize_columns({axis.args(), bytes.data(), width, out.data(), width, width}, 0,
                                  size);
      for (int64_t y = 0; y < size; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          ASSERT_EQ(out[y * width + x], weighted(axis, y, bytes.data() + x, width)) << table->isa;
        }
      }
    }
  }
}

TEST(ImageKernels, Normalize) {
  std::mt19937 random(3);
  constexpr int64_t kBytes = 101;
  std::vector<uint8_t> x = random_bytes(kBytes, random), other = random_bytes(kBytes, random);
  torch::Tensor scale = torch::rand({kBytes}), shift = torch::randn({kBytes});
  auto as_tensor = [&](std::vector<uint8_t>& bytes) {
    return torch::from_blob(bytes.data(), {kBytes}, torch::kByte).to(torch::kFloat);
  };
  for (const Kernels* table : kernels_here()) {
    for (bool mixed : {false, true}) {
      torch::Tensor value = as_tensor(x);
      if (mixed) value = 0.3f * value + 0.7f * as_tensor(other);
      torch::Tensor wanted = value * scale + shift, out = torch::empty({kBytes});
      NormalizeArgs<float> args{x.data(),
                                mixed ? other.data() : nullptr,
                                0.3f,
                                scale.data_ptr<float>(),
                                shift.data_ptr<float>(),
                                out.data_ptr<float>(),
                                kBytes};
      table->image.normalize_fp32(args);
      EXPECT_TRUE(torch::allclose(out, wanted, 1e-6, 1e-4)) << table->isa;  // order of operations
      torch::Tensor half = torch::empty({kBytes}, torch::kHalf);
      table->image.normalize_fp16({args.x, args.other, args.weight, args.scale, args.shift,
                                   static_cast<Fp16*>(half.data_ptr()), kBytes});
      EXPECT_TRUE(torch::equal(half, out.to(torch::kHalf))) << table->isa;
      torch::Tensor brain = torch::empty({kBytes}, torch::kBFloat16);
      table->image.normalize_bf16({args.x, args.other, args.weight, args.scale, args.shift,
                                   static_cast<Bf16*>(brain.data_ptr()), kBytes});
      EXPECT_TRUE(torch::equal(brain, out.to(torch::kBFloat16))) << table->isa;
    }
  }
}

}  // namespace
}  // namespace lockstep

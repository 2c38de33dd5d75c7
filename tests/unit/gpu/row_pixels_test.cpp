// The GPU's kernels for batch norm and for sums of columns (gpu/row_pixels.h), as row_kernels_test
// runs its kernels, against the kernels of CPUs and against sums in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "support/row_testing.h"

namespace lockstep {
namespace {

// Rows of channels that begin where groups of channels may be read at once.
template <class T>
class Rows {
 public:
  Rows(Numbers<T> numbers, int64_t pixels, int64_t channels)
      : memory_(numbers.size() + kGroupedChannels), size_(pixels * channels) {
    std::copy(numbers.begin(), numbers.end(), data());
  }
  T* data() {
    constexpr uintptr_t kBytes = sizeof(T) * kGroupedChannels;
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    return reinterpret_cast<T*>((address + kBytes - 1) / kBytes * kBytes);
  }
  Numbers<T> numbers() { return Numbers<T>(data(), data() + size_); }

 private:
  Numbers<T> memory_;
  int64_t size_;
};

template <class T>
Rows<T> random_rows(int64_t pixels, int64_t channels, uint64_t seed) {
  return {random_numbers<T>(pixels * channels, seed), pixels, channels};
}

struct PixelShape {
  int64_t pixels, channels;
};

template <class T>
class PixelKernels : public ::testing::Test {
 protected:
  using Test = std::function<void(const PixelShape&, bool grouped)>;

  // Calls test(shape, grouped) for few and many channels, which fill a block's slots several times
  // or not at all, with and without groups, and teams of 1, 2 and 5.
  void for_each_shape(const Test& test) {
    for (const int team : {1, 2, 5}) {
      team_size() = team;
      for (const PixelShape& shape : {PixelShape{2, 3}, {700, 8}, {37, 24}, {9, 300}, {7, 2072}}) {
        for (const bool grouped : {false, true}) {
          if (grouped && shape.channels % kGroupedChannels != 0) continue;
          SCOPED_TRACE(::testing::Message()
                       << shape.pixels << " pixels of " << shape.channels << " channels, grouped "
                       << grouped << ", team " << team);
          test(shape, grouped);
          if (this->HasFailure()) return;
        }
      }
    }
    team_size() = 1;
  }

  // With room for sums, which it owns.
  PixelBlocks blocks_of(const PixelShape& shape, bool grouped) {
    PixelBlocks blocks{.pixels = shape.pixels, .channels = shape.channels, .grouped = grouped};
    const int64_t groups = shape.channels / (grouped ? kGroupedChannels : 1);
    blocks.part_pixels = 3;
    blocks.parts = std::max<int64_t>(1, kBlockSlots / groups);
    const int64_t pixels = blocks.part_pixels * blocks.parts;
    blocks.count = (shape.pixels + pixels - 1) / pixels;
    sums_ = random_numbers<float>(blocks.count * 2 * shape.channels, 77);  // are written over
    blocks.sums = sums_.data();
    return blocks;
  }

  const TypedGpuKernels<T>& there() const { return gpu().template typed<T>(); }
  const TypedKernels<T>& here() const { return cpu().template typed<T>(); }

 private:
  Numbers<float> sums_;
};

using Types = ::testing::Types<float, Bf16, Fp16>;
TYPED_TEST_SUITE(PixelKernels, Types);

void expect_close_totals(const Numbers<double>& got, const Numbers<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << "total " << i;
  }
}

TYPED_TEST(PixelKernels, SumsOfPixels) {
  using T = TypeParam;
  this->for_each_shape([&](const PixelShape& s, bool grouped) {
    auto x = random_rows<T>(s.pixels, s.channels, 1);
    const auto channels = static_cast<std::size_t>(s.channels);
    Numbers<double> want(2 * channels + 1), got(2 * channels + 1);
    for (int64_t i = 0; i < s.pixels * s.channels; ++i) {
      const auto value = static_cast<double>(to_float(x.data()[i]));
      const auto c = static_cast<std::size_t>(i % s.channels);
      want[c] += value;
      want[channels + c] += value * value;
    }
    want[2 * channels] = static_cast<double>(s.pixels);
    const PixelBlocks blocks = this->blocks_of(s, grouped);
    this->there().pixel_sums({x.data(), x.data(), blocks}, blocks.count);
    this->there().channel_totals({x.data(), blocks, got.data()}, s.channels);
    expect_close_totals(got, want);

    // Without an origin: the gradient of a bias.
    auto gradient = random_numbers<float>(s.channels, 2), plain = gradient;
    this->there().pixel_sums({x.data(), nullptr, blocks}, blocks.count);
    gpu().add_totals({blocks.sums, blocks.count, s.channels, gradient.data(), nullptr}, s.channels);
    this->here().add_column_sums(x.data(), s.pixels, s.channels, plain.data(), 0, s.channels);
    expect_close(gradient, plain, 1e-5f);
  });
}

// Mean, scale, bias, ... of some channels.
struct ChannelNumbers {
  explicit ChannelNumbers(int64_t channels)
      : mean(random_numbers<float>(channels, 11)),
        scale(random_numbers<float>(channels, 12)),
        bias(random_numbers<float>(channels, 13)),
        slope(random_numbers<float>(channels, 14)),
        offset(random_numbers<float>(channels, 15)) {}
  Numbers<float> mean, scale, bias, slope, offset;
};

TYPED_TEST(PixelKernels, BatchNorm) {
  using T = TypeParam;
  this->for_each_shape([&](const PixelShape& s, bool grouped) {
    auto x = random_rows<T>(s.pixels, s.channels, 1);
    auto residual = random_rows<T>(s.pixels, s.channels, 2);
    const ChannelNumbers c(s.channels);
    const PixelBlocks blocks = this->blocks_of(s, grouped);
    T* const residuals[] = {nullptr, residual.data()};
    for (T* const branch : residuals) {
      for (const bool relu : {false, true}) {
        auto got = random_rows<T>(s.pixels, s.channels, 3), want = got;
        BatchNormArgs<T> args{x.data(), c.mean.data(), c.scale.data(), c.bias.data(),
                              branch,   got.data(),    s.channels,     relu};
        this->there().batch_norm({args, blocks}, blocks.count);
        args.y = want.data();
        this->here().batch_norm(args, 0, s.pixels);
        expect_close(got.numbers(), want.numbers());
      }
    }
  });
}

TYPED_TEST(PixelKernels, BatchNormBackward) {
  using T = TypeParam;
  this->for_each_shape([&](const PixelShape& s, bool grouped) {
    auto x = random_rows<T>(s.pixels, s.channels, 1), d_y = random_rows<T>(s.pixels, s.channels, 2);
    auto y = random_rows<T>(s.pixels, s.channels, 3);
    ChannelNumbers c(s.channels);
    const BatchNormMask<T> masks[] = {
        {d_y.data(), nullptr, false}, {d_y.data(), nullptr, true}, {d_y.data(), y.data(), true}};
    for (const BatchNormMask<T>& mask : masks) {
      auto g_got = random_rows<T>(s.pixels, s.channels, 4), g_want = g_got;
      auto sum = zeros_of<float>(s.channels), product = sum;
      BatchNormBackwardSumsArgs<T> sums{mask,           x.data(),       c.mean.data(),
                                        c.scale.data(), c.bias.data(),  g_want.data(),
                                        sum.data(),     product.data(), s.channels};
      this->here().batch_norm_backward_sums(sums, 0, s.pixels);
      PixelBlocks blocks = this->blocks_of(s, grouped);
      sums.g = g_got.data();
      this->there().batch_norm_backward_sums({sums, blocks}, blocks.count);
      Numbers<double> got(static_cast<std::size_t>(2 * s.channels)), want;
      this->there().channel_totals({nullptr, blocks, got.data()}, s.channels);
      want.assign(sum.begin(), sum.end());
      want.insert(want.end(), product.begin(), product.end());
      expect_close_totals(got, want);
      expect_close(g_got.numbers(), g_want.numbers());

      auto d_got = random_rows<T>(s.pixels, s.channels, 5), d_want = d_got;
      BatchNormBackwardArgs<T> args{mask,          x.data(),       c.mean.data(),   c.scale.data(),
                                    c.bias.data(), c.slope.data(), c.offset.data(), d_want.data(),
                                    s.channels};
      this->here().batch_norm_backward(args, 0, s.pixels);
      args.d_x = d_got.data();
      this->there().batch_norm_backward({args, blocks}, blocks.count);
      expect_close(d_got.numbers(), d_want.numbers());
    }
  });
}

TEST(ChannelKernels, MomentsMoveTheRunningStatistics) {
  constexpr int64_t kChannels = 2;
  // Channel 0: the values 1, 2, 6; channel 1: three times 5, of whose squares a rounding is left.
  const double totals[] = {9, 15, 41, 75 - 1e-14, 3};
  const Numbers<double> given(totals, totals + 5);
  Numbers<float> weight{2, 3}, mean_kept{10, 20}, variance_kept{1, 2};
  Numbers<float> mean(kChannels), scale(kChannels), rstd(kChannels);
  BatchNormMomentsArgs args{
      given.data(),         kChannels,   0.25,         1e-3,       weight.data(), mean_kept.data(),
      variance_kept.data(), mean.data(), scale.data(), rstd.data()};
  gpu().batch_norm_moments(args, kChannels);
  EXPECT_EQ(mean, (Numbers<float>{3, 5}));
  const double variance = 14.0 / 3;
  EXPECT_NEAR(rstd[0], 1 / std::sqrt(variance + 1e-3), 1e-6);
  EXPECT_NEAR(scale[0], 2 / std::sqrt(variance + 1e-3), 1e-6);
  EXPECT_NEAR(rstd[1], 1 / std::sqrt(1e-3), 1e-4);
  EXPECT_NEAR(mean_kept[0], 0.75 * 10 + 0.25 * 3, 1e-6);
  EXPECT_NEAR(variance_kept[0], 0.75 * 1 + 0.25 * 7, 1e-6) << "the unbiased variance";
  EXPECT_NEAR(variance_kept[1], 0.75 * 2, 1e-6);

  args.totals = nullptr;
  gpu().batch_norm_moments(args, kChannels);
  EXPECT_EQ(mean, mean_kept) << "not training";
  EXPECT_NEAR(rstd[0], 1 / std::sqrt(2.5 + 1e-3), 1e-6);
  EXPECT_NEAR(variance_kept[0], 2.5, 1e-6);
}

TEST(ChannelKernels, TermsOfTheBackwardPass) {
  const Numbers<double> own{3, 5}, all{6, 20}, count{4};
  const Numbers<float> scale{8}, rstd{2};
  Numbers<float> d_weight{100}, d_bias{200}, slope{1}, offset{1};
  BatchNormTermsArgs args{own.data(),   all.data(),   count.data(),    1,
                          scale.data(), rstd.data(),  d_weight.data(), d_bias.data(),
                          slope.data(), offset.data()};
  gpu().batch_norm_terms(args, 1);
  EXPECT_EQ(d_weight[0], 100 + 5 * 2) << "of this rank's pixels";
  EXPECT_EQ(d_bias[0], 200 + 3);
  EXPECT_EQ(slope[0], -8.0f / 4 * 4 * 20) << "of all ranks'";
  EXPECT_EQ(offset[0], -8.0f / 4 * 6);
  args.count = nullptr;
  args.d_weight = args.d_bias = nullptr;
  gpu().batch_norm_terms(args, 1);
  EXPECT_EQ(slope[0], 0);
  EXPECT_EQ(offset[0], 0);
  EXPECT_EQ(d_weight[0], 110);
}

}  // namespace
}  // namespace lockstep

// The kernels of GPUs, run on the CPU by teams of one and of several threads, or on a GPU
// (support/row_memory.h), against the kernels of CPUs, which the tests of nn/ hold against
// libtorch's operations.
#include "gpu/row_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "support/row_testing.h"

namespace lockstep {
namespace {

// What the kernels are tried with.
struct Shape {
  int64_t rows, width;
  double dropout;
};

template <class T>
class RowKernels : public ::testing::Test {
 protected:
  // Calls test(shape) for odd and even widths, with and without dropout, and teams of 1, 2 and 5.
  template <class Test>
  void for_each_shape(const Test& test) {
    for (const int team : {1, 2, 5}) {
      team_size() = team;
      for (const int64_t width : {1, 2, 17, 64, 257}) {
        for (const double dropout : {0.0, 0.3}) {
          SCOPED_TRACE(::testing::Message()
                       << "width " << width << ", dropout " << dropout << ", team " << team);
          test(Shape{width == 2 ? 1 : 7, width, dropout});
          if (this->HasFailure()) return;
        }
      }
    }
    team_size() = 1;
  }

  DropoutRows dropout_of(const Shape& shape) {
    keys_.resize(static_cast<std::size_t>(shape.rows));
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = static_cast<int64_t>(i) * 977 + 5;
    const auto threshold = static_cast<uint32_t>(shape.dropout * 65536);
    return {keys_.data(), 0x1234567890abcdef, threshold,
            65536.0f / (65536.0f - static_cast<float>(threshold))};
  }

  const TypedGpuKernels<T>& there() const { return gpu().template typed<T>(); }
  const TypedKernels<T>& here() const { return cpu().template typed<T>(); }

 private:
  Numbers<int64_t> keys_;
};

using Types = ::testing::Types<float, Bf16, Fp16>;
TYPED_TEST_SUITE(RowKernels, Types);

TYPED_TEST(RowKernels, AddDropout) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    const int64_t n = s.rows * s.width;
    const auto residual = random_numbers<float>(n, 1), scales = random_numbers<float>(s.rows, 2);
    const auto x = random_numbers<T>(n, 3), bias = random_numbers<T>(s.width, 4);
    const T* biases[] = {bias.data(), nullptr};
    const float* row_scales[] = {scales.data(), nullptr};
    for (const T* b : biases) {
      for (const float* scale : row_scales) {
        auto got = zeros_of<float>(n), want = got;
        AddDropoutArgs<T> args{residual.data(),     x.data(), b, got.data(), s.width,
                               this->dropout_of(s), scale};
        this->there().add_dropout(args, s.rows);
        args.out = want.data();
        this->here().add_dropout(args, 0, s.rows);
        expect_close(got, want);

        auto d_got = zeros_of<T>(n), d_want = d_got;
        AddDropoutBackwardArgs<T> back{residual.data(), d_got.data(), s.width, args.dropout, scale};
        this->there().add_dropout_backward(back, s.rows);
        back.d_x = d_want.data();
        this->here().add_dropout_backward(back, 0, s.rows);
        expect_close(d_got, d_want);
      }
    }
  });
}

TYPED_TEST(RowKernels, ReluDropout) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    const int64_t n = s.rows * s.width;
    auto got = random_numbers<T>(n, 1), want = got;
    got[0] = want[0] = from_float<T>(std::numeric_limits<float>::quiet_NaN());
    const auto bias = random_numbers<T>(s.width, 2), d_y = random_numbers<T>(n, 3);
    ReluDropoutArgs<T> args{got.data(), bias.data(), s.width, this->dropout_of(s)};
    this->there().relu_dropout(args, s.rows);
    args.x = want.data();
    this->here().relu_dropout(args, 0, s.rows);
    expect_close(got, want);

    auto d_got = zeros_of<T>(n), d_want = d_got;
    ReluDropoutBackwardArgs<T> back{d_y.data(), got.data(), d_got.data(), args.dropout.scale};
    this->there().relu_dropout_backward(back, n);
    back.d_x = d_want.data();
    this->here().relu_dropout_backward(back, 0, n);
    expect_close(d_got, d_want);
  });
}

TYPED_TEST(RowKernels, SmoothDropout) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    const int64_t n = s.rows * s.width;
    const auto bias = random_numbers<T>(s.width, 2), d_y = random_numbers<T>(n, 3);
    for (const bool gelu : {true, false}) {
      for (const bool keeps_slope : {true, false}) {
        auto x_got = random_numbers<T>(n, 1), x_want = x_got;
        auto y_got = zeros_of<T>(n), y_want = y_got;
        GeluDropoutArgs<T> args{x_got.data(), bias.data(),
                                keeps_slope ? y_got.data() : x_got.data(), s.width,
                                this->dropout_of(s)};
        (gelu ? this->there().gelu_dropout : this->there().silu_dropout)(args, s.rows);
        args.x = x_want.data();
        args.y = keeps_slope ? y_want.data() : x_want.data();
        (gelu ? this->here().gelu_dropout : this->here().silu_dropout)(args, 0, s.rows);
        expect_close(x_got, x_want);
        expect_close(y_got, y_want);

        auto d_got = zeros_of<T>(n), d_want = d_got;
        this->there().slope({d_y.data(), x_got.data(), d_got.data()}, n);
        this->here().gelu_dropout_backward(d_y.data(), x_got.data(), d_want.data(), 0, n);
        expect_close(d_got, d_want);
      }
    }
  });
}

// The norm of [rows, width] and what its backward pass reads.
template <class T>
struct Norm {
  explicit Norm(const Shape& s)
      : x(random_numbers<float>(s.rows * s.width, 11)),
        weight(random_numbers<float>(s.width, 12)),
        bias(random_numbers<float>(s.width, 13)),
        mean(zeros_of<float>(s.rows)),
        rstd(zeros_of<float>(s.rows)),
        y(zeros_of<T>(s.rows * s.width)),
        width(s.width) {}
  LayerNormArgs<T> args() {
    return {x.data(), weight.data(), bias.data(), y.data(), mean.data(), rstd.data(), width, 1e-5f};
  }

  Numbers<float> x, weight, bias, mean, rstd;
  Numbers<T> y;
  int64_t width;
};

TYPED_TEST(RowKernels, LayerNorm) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    const int64_t n = s.rows * s.width;
    Norm<T> got(s), want(s);
    this->there().layer_norm(got.args(), s.rows);
    this->here().layer_norm(want.args(), 0, s.rows);
    // A row of one element is its own mean; rstd is then 1 / sqrt(epsilon) of an error of rounding.
    expect_close(got.y, want.y, std::max(tolerance<T>(), 1e-5f));
    expect_close(got.mean, want.mean);
    expect_close(got.rstd, want.rstd, 1e-5f);

    const auto d_y = random_numbers<T>(n, 3);
    const auto d_residual = random_numbers<float>(n, 4);
    const float* residuals[] = {d_residual.data(), nullptr};
    for (const float* residual : residuals) {
      auto d_got = zeros_of<float>(n), d_want = d_got;
      const int64_t block_rows = 3, blocks = (s.rows + 2) / 3;
      auto sums = random_numbers<float>(2 * blocks * s.width, 5);  // which is written over
      auto w_got = zeros_of<float>(2 * s.width), w_want = w_got;
      float* const got_weight = w_got.data();
      LayerNormBackwardArgs<T> args{d_y.data(),       want.x.data(),    want.weight.data(),
                                    want.mean.data(), want.rstd.data(), residual,
                                    d_got.data(),     nullptr,          nullptr,
                                    s.width};
      this->there().norm_weights({args, s.rows, block_rows, sums.data()}, blocks);
      gpu().add_totals({sums.data(), blocks, s.width, got_weight, got_weight + s.width}, s.width);
      this->there().layer_norm_backward(args, s.rows);
      args.d_x = d_want.data();
      args.d_weight = w_want.data();
      args.d_bias = w_want.data() + s.width;
      this->here().layer_norm_backward(args, 0, s.rows);
      expect_close(d_got, d_want, s.width == 1 ? 1e-2f : 1e-5f);
      expect_close(w_got, w_want, 1e-5f);
    }
  });
}

// Runs both kernels of the residual block, whose norm has the type N, against two of the CPU.
template <class T, class N, class Forward, class Backward>
void expect_equal_blocks(const Shape& s, const DropoutRows& dropout, const Forward& forward,
                         const Backward& backward) {
  const int64_t n = s.rows * s.width;
  const auto residual = random_numbers<float>(n, 1);
  const auto x = random_numbers<T>(n, 2), bias = random_numbers<T>(s.width, 3);
  Norm<N> got(s), want(s);
  auto rounded = zeros_of<Bf16>(n);
  AddDropoutArgs<T> add{residual.data(), x.data(), bias.data(), got.x.data(),
                        s.width,         dropout,  nullptr};
  forward({add, got.args(), rounded.data()}, s.rows);
  add.out = want.x.data();
  cpu().typed<T>().add_dropout(add, 0, s.rows);
  cpu().typed<N>().layer_norm(want.args(), 0, s.rows);
  expect_close(got.x, want.x);
  expect_close(got.y, want.y, std::max(tolerance<N>(), 1e-5f));
  auto in_bf16 = zeros_of<Bf16>(n);
  for (std::size_t i = 0; i < in_bf16.size(); ++i) {
    in_bf16[i] = from_float<Bf16>(to_float(want.y[i]));
  }
  expect_close(rounded, in_bf16);

  // d_y is where d_x goes, as after a post-norm, where the types allow.
  auto d_sum = random_numbers<float>(n, 4), d_want = d_sum;
  const auto d_y = random_numbers<N>(n, 5);
  auto d_x = zeros_of<T>(n), d_x_want = d_x;
  auto unused = zeros_of<float>(2 * s.width);
  const N* from = d_y.data();
  if constexpr (std::is_same_v<N, float>) from = d_sum.data();
  LayerNormBackwardArgs<N> norm{from,
                                want.x.data(),
                                want.weight.data(),
                                want.mean.data(),
                                want.rstd.data(),
                                residual.data(),
                                d_sum.data(),
                                unused.data(),
                                unused.data() + s.width,
                                s.width};
  AddDropoutBackwardArgs<T> drop{d_sum.data(), d_x.data(), s.width, dropout, nullptr};
  backward({norm, drop}, s.rows);
  if constexpr (std::is_same_v<N, float>) norm.d_y = d_want.data();
  norm.d_x = d_want.data();
  drop.d_out = d_want.data();
  drop.d_x = d_x_want.data();
  cpu().typed<N>().layer_norm_backward(norm, 0, s.rows);
  cpu().typed<T>().add_dropout_backward(drop, 0, s.rows);
  expect_close(d_sum, d_want, s.width == 1 ? 1e-2f : 1e-5f);
  expect_close(d_x, d_x_want, s.width == 1 ? 2e-2f : tolerance<T>() * 5);
}

TYPED_TEST(RowKernels, ResidualNorm) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    expect_equal_blocks<T, T>(s, this->dropout_of(s), this->there().residual_norm,
                              this->there().residual_norm_backward);
    expect_equal_blocks<T, float>(s, this->dropout_of(s), this->there().residual_norm_fp32,
                                  this->there().residual_norm_fp32_backward);
  });
}

// Attention of sentences of these lengths to others or to themselves.
template <class T>
class AttentionCase {
 public:
  AttentionCase(std::vector<int32_t> queries, std::vector<int32_t> keys, bool causal, int64_t width)
      : width_(width), causal_(causal), query_offsets_{0}, key_offsets_{0} {
    for (const int32_t n : queries) query_offsets_.push_back(query_offsets_.back() + n);
    for (const int32_t n : keys) key_offsets_.push_back(key_offsets_.back() + n);
    longest_ = *std::max_element(keys.begin(), keys.end());
    query_ = random_numbers<T>(query_tokens() * kHeads * width, 1);
    memory_ = random_numbers<T>(key_tokens() * 2 * kHeads * width, 2);
    d_out_ = random_numbers<T>(query_tokens() * kHeads * width, 3);
  }
  int64_t query_tokens() const { return query_offsets_.back(); }
  int64_t key_tokens() const { return key_offsets_.back(); }

  void expect_equal(const TypedGpuKernels<T>& there, const TypedKernels<T>& here,
                    const DropoutRows& dropout) {
    Results got(*this), want(*this);
    run_there(there, dropout, got);
    run_here(here, dropout, want);
    expect_close(got.out, want.out, tolerance<T>() * 5);
    expect_close(got.log_sum, want.log_sum, 1e-5f);
    expect_close(got.d_query, want.d_query, tolerance<T>() * 20);
    expect_close(got.d_memory, want.d_memory, tolerance<T>() * 20);
  }

 private:
  static constexpr int64_t kHeads = 3;
  struct Results {
    explicit Results(const AttentionCase& of)
        : out(zeros_of<T>(std::ssize(of.query_))),
          d_query(random_numbers<T>(std::ssize(of.query_), 4)),  // which is written over
          d_memory(random_numbers<T>(std::ssize(of.memory_), 5)),
          log_sum(zeros_of<float>(of.query_tokens() * kHeads)) {}
    Numbers<T> out, d_query, d_memory;
    Numbers<float> log_sum;
  };

  AttentionArgs<T> args(const DropoutRows& dropout, Results& results) const {
    const int64_t all = kHeads * width_;
    return {query_.data(),
            memory_.data(),
            memory_.data() + all,
            all,
            2 * all,
            kHeads,
            width_,
            causal_,
            dropout,
            results.log_sum.data(),
            results.out.data(),
            all};
  }
  AttentionBackwardArgs<T> backward(Results& results) const {
    const int64_t all = kHeads * width_;
    return {d_out_.data(),
            all,
            results.d_query.data(),
            results.d_memory.data(),
            results.d_memory.data() + all,
            all,
            2 * all};
  }

  void run_there(const TypedGpuKernels<T>& there, const DropoutRows& dropout, Results& results) {
    const int64_t rows = query_tokens() * kHeads;
    auto weights = zeros_of<float>(rows * longest_);  // working memory, with anything in it
    std::fill(weights.begin(), weights.end(), std::numeric_limits<float>::quiet_NaN());
    auto d_scores = weights;
    const PackedAttentionArgs<T> all{args(dropout, results),
                                     backward(results),
                                     query_offsets_.data(),
                                     key_offsets_.data(),
                                     std::ssize(query_offsets_) - 1,
                                     longest_,
                                     weights.data(),
                                     d_scores.data()};
    there.attention(all, rows);
    there.attention_backward_queries(all, rows);
    there.attention_backward_keys(all, key_tokens() * kHeads);
  }

  void run_here(const TypedKernels<T>& here, const DropoutRows& dropout, Results& results) {
    const auto floats = static_cast<std::size_t>(cpu().attention_scratch(longest_, width_));
    std::vector<float> memory(floats + 16);
    void* room = memory.data();
    std::size_t bytes = memory.size() * sizeof(float);
    auto* scratch = static_cast<float*>(std::align(64, floats * sizeof(float), room, bytes));
    for (std::size_t s = 0; s + 1 < query_offsets_.size(); ++s) {
      for (int64_t head = 0; head < kHeads; ++head) {
        const AttentionTask task{query_offsets_[s], query_offsets_[s + 1], key_offsets_[s],
                                 key_offsets_[s + 1], head};
        here.attention(args(dropout, results), task, scratch);
        here.attention_backward(args(dropout, results), backward(results), task, scratch);
      }
    }
  }

  int64_t width_;
  bool causal_;
  Numbers<int32_t> query_offsets_, key_offsets_;
  int64_t longest_;
  Numbers<T> query_, memory_, d_out_;
};

TYPED_TEST(RowKernels, Attention) {
  using T = TypeParam;
  const std::vector<int32_t> few = {1, 3, 9}, others = {4, 1, 37};
  for (const int team : {1, 3}) {
    team_size() = team;
    for (const int64_t width : {1, 5, 16}) {
      for (const double dropout : {0.0, 0.3}) {
        SCOPED_TRACE(::testing::Message()
                     << "width " << width << ", dropout " << dropout << ", team " << team);
        AttentionCase<T> cross(few, others, false, width), self(others, others, true, width);
        cross.expect_equal(this->there(), this->here(), this->dropout_of({13, 1, dropout}));
        self.expect_equal(this->there(), this->here(), this->dropout_of({42, 1, dropout}));
      }
    }
  }
  team_size() = 1;
}

TYPED_TEST(RowKernels, CrossEntropy) {
  using T = TypeParam;
  this->for_each_shape([&](const Shape& s) {
    for (const bool gradient : {false, true}) {
      auto logits = random_numbers<T>(s.rows * s.width, 1);
      // Two largest logits, of which only the first counts as right.
      if (s.width > 16) logits[3] = logits[9] = from_float<T>(9);
      auto got = logits, want = logits;
      Numbers<int64_t> targets(static_cast<std::size_t>(s.rows));
      for (std::size_t i = 0; i < targets.size(); ++i) {
        targets[i] = static_cast<int64_t>(i * 3) % s.width;
      }
      if (s.width > 16) targets[0] = 9;
      auto rows = zeros_of<float>(4 * s.rows);
      Numbers<uint8_t> right(static_cast<std::size_t>(2 * s.rows));
      CrossEntropyArgs<T> args{got.data(),  s.width, targets.data(), static_cast<float>(s.dropout),
                               gradient,    8,       rows.data(),    rows.data() + s.rows,
                               right.data()};
      this->there().cross_entropy(args, s.rows);
      args.logits = want.data();
      args.loss += 2 * s.rows;
      args.nll += 2 * s.rows;
      args.correct += s.rows;
      this->here().cross_entropy(args, 0, s.rows);
      expect_close(got, want, 8 * tolerance<T>());
      const auto middle = rows.begin() + 2 * s.rows;
      expect_close(Numbers<float>(rows.begin(), middle), Numbers<float>(middle, rows.end()), 1e-5f);
      EXPECT_TRUE(std::equal(right.begin(), right.begin() + s.rows, right.begin() + s.rows));
      if (s.width > 16) {
        EXPECT_EQ(right[0], 0);
      }
    }
  });
}

TYPED_TEST(RowKernels, CrossEntropyOfAnUnknownTargetIsNaN) {
  using T = TypeParam;
  auto logits = random_numbers<T>(3 * 5, 1);
  const auto before = logits;
  const Numbers<int64_t> targets = {5, -1, 4};
  Numbers<float> loss(3), nll(3);
  Numbers<uint8_t> right(3);
  this->there().cross_entropy(
      {logits.data(), 5, targets.data(), 0.1f, true, 1, loss.data(), nll.data(), right.data()}, 3);
  EXPECT_TRUE(std::isnan(loss[0]) && std::isnan(loss[1]) && !std::isnan(loss[2]));
  expect_close(Numbers<T>(logits.begin(), logits.begin() + 10),
               Numbers<T>(before.begin(), before.begin() + 10));
}

class OtherRowKernels : public RowKernels<float> {};

TEST_F(OtherRowKernels, Embedding) {
  for_each_shape([&](const Shape& s) {
    const int64_t n = s.rows * s.width, entries = 4;
    const auto table = random_numbers<float>(entries * s.width, 1);
    const auto positions = random_numbers<float>(s.rows * s.width, 2);
    Numbers<int64_t> tokens, position;
    for (int64_t i = 0; i < s.rows; ++i) {
      tokens.push_back(i == 2 ? kZeroToken : i * i % entries);
      position.push_back(s.rows - 1 - i);
    }
    auto got = zeros_of<float>(n), want = got;
    EmbeddingArgs args{tokens.data(), position.data(), table.data(), positions.data(),
                       got.data(),    s.width,         3.5f,         dropout_of(s)};
    gpu().embedding({args, entries, s.rows}, s.rows);
    args.out = want.data();
    cpu().embedding(args, 0, s.rows);
    expect_close(got, want);

    Numbers<int64_t> order(tokens.size()), sorted;
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return tokens[static_cast<std::size_t>(a)] < tokens[static_cast<std::size_t>(b)];
    });
    for (const int64_t i : order) sorted.push_back(tokens[static_cast<std::size_t>(i)]);
    const auto d_out = random_numbers<float>(n, 3);
    auto d_got = random_numbers<float>(entries * s.width, 4), d_want = d_got;
    EmbeddingBackwardArgs back{sorted.data(), s.rows, d_out.data(), d_got.data(),
                               s.width,       3.5f,   args.dropout};
    gpu().embedding_backward({back, order.data(), entries}, s.rows);
    back.tokens = tokens.data();
    back.d_table = d_want.data();
    cpu().embedding_backward(back, 0, s.width);
    expect_close(d_got, d_want);
  });
}

TEST_F(OtherRowKernels, AnUnknownTokenIsARowOfNaN) {
  const Numbers<float> table(8, 1), positions(8, 1);
  const Numbers<int64_t> tokens = {4, -2, 1, 1}, position = {0, 0, 4, 1};
  Numbers<float> out(8);
  gpu().embedding(
      {{tokens.data(), position.data(), table.data(), positions.data(), out.data(), 2, 1, {}},
       4,
       4},
      4);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
  EXPECT_EQ(out[6], 2);
  Numbers<float> d_table(8);
  const Numbers<int64_t> sorted = {-2, 1, 1, 4}, order = {1, 2, 3, 0};
  gpu().embedding_backward({{sorted.data(), 4, out.data(), d_table.data(), 2, 1, {}},
                            order.data(),
                            1},  // of which only one entry is there
                           4);
  EXPECT_EQ(d_table, Numbers<float>(8));
}

// The arrays of an optimizer; two of them start alike.
struct Arrays {
  static constexpr int64_t kCount = 23;
  Numbers<float> value = random_numbers<float>(kCount, 1);
  Numbers<float> gradient = random_numbers<float>(kCount, 2);
  Numbers<float> m = random_numbers<float>(kCount, 3), v = random_numbers<float>(kCount, 4);
  Numbers<float> average = random_numbers<float>(kCount, 5);
  Numbers<Bf16> bf16 = zeros_of<Bf16>(kCount);
  Numbers<Fp16> fp16 = zeros_of<Fp16>(kCount);

  Arrays() {
    for (float& x : v) x *= x;
  }
  UpdateArgs args(bool all) {
    return {value.data(),
            gradient.data(),
            all ? bf16.data() : nullptr,
            all ? nullptr : fp16.data(),
            all ? average.data() : nullptr,
            0.5f,
            0.99f,
            0.1f,
            0.2f};
  }
  void expect_equal(const Arrays& other) const {
    expect_close(value, other.value);
    expect_close(gradient, other.gradient);
    expect_close(m, other.m);
    expect_close(v, other.v);
    expect_close(average, other.average);
    expect_close(bf16, other.bf16);
    expect_close(fp16, other.fp16);
  }
};

TEST_F(OtherRowKernels, Adam) {
  for (const bool all : {true, false}) {
    Arrays got, want;
    AdamArgs args{got.args(all), got.m.data(), got.v.data(), 0.1f, 0.98f,
                  0.02f,         1e-8f,        0.01f,        1.5f};
    gpu().adam({args, 3}, 17);
    args.update = want.args(all);
    args.m = want.m.data();
    args.v = want.v.data();
    cpu().adam(args, 3, 20);
    got.expect_equal(want);
  }
}

TEST_F(OtherRowKernels, Momentum) {
  for (const bool all : {true, false}) {
    Arrays got, want;
    MomentumArgs args{got.args(all), all ? got.m.data() : nullptr, 0.9f, 0.8f, 1, 0.9f, 0.01f};
    gpu().momentum({args, 3}, 17);
    args.update = want.args(all);
    if (all) args.m = want.m.data();
    cpu().momentum(args, 3, 20);
    got.expect_equal(want);
  }
}

// Rows of 5, of which the arrays hold those from the table's element 3 on at their element 1; the
// second and the third have no gradient.
TEST_F(OtherRowKernels, LazyAdam) {
  for (const int team : {1, 3}) {
    team_size() = team;
    for (const bool all : {true, false}) {
      Arrays got, want;
      auto table = random_numbers<float>(25, 7);
      std::fill(table.begin() + 5, table.begin() + 15, 0.0f);
      const int64_t first = 3, begin = 1, end = 21;
      for (Arrays* arrays : {&got, &want}) {
        for (int64_t i = begin; i < end; ++i) {
          arrays->gradient[static_cast<std::size_t>(i)] =
              table[static_cast<std::size_t>(i - begin + first)];
        }
      }
      AdamArgs args{got.args(all), got.m.data(), got.v.data(), 0.1f, 0.98f,
                    0.02f,         1e-8f,        0.01f,        1.5f};
      gpu().lazy_adam({args, table.data(), 5, 0, begin - first, begin, end}, 5);
      args.update = want.args(all);
      args.m = want.m.data();
      args.v = want.v.data();
      for (int64_t row = 0; row < 5; ++row) {
        const int64_t from = std::max(begin, row * 5 + begin - first);
        const int64_t to = std::min(end, row * 5 + 5 + begin - first);
        if (row == 1 || row == 2) {
          if (all) cpu().move_average(args.update, from, to);
        } else {
          cpu().adam(args, from, to);
        }
      }
      got.expect_equal(want);
    }
  }
  team_size() = 1;
}

}  // namespace
}  // namespace lockstep

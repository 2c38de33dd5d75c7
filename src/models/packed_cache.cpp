// The decoder's cache on the CPU: nothing is ever copied. The projections of every step stay where
// their matrix product wrote them, a table says which row of which step each hypothesis descends
// from, and reordering the beams only reorders that table. The hypotheses of a sentence read the
// same keys and values of its source.
#include <numeric>
#include <utility>

#include "models/decoder_state.h"
#include "nn/fused.h"

namespace lockstep {
namespace {

using torch::Tensor;

template <class T>
class PackedCache : public DecoderCache {
 public:
  explicit PackedCache(DecoderMemory memory)
      : memory_(std::move(memory)), steps_(memory_.key_value.size()) {
    const std::vector<int32_t>& offsets = memory_.source.offsets;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      memory_first_.push_back(offsets[s]);
      memory_count_.push_back(offsets[s + 1] - offsets[s]);
    }
    for (Tensor& key_value : memory_.key_value) {
      key_value = key_value.contiguous();
      std::vector<const T*> keys;
      for (int64_t i = 0; i < key_value.size(0); ++i) {
        keys.push_back(detail::pointer<T>(key_value) + i * key_value.size(1));
      }
      memory_keys_.push_back(std::move(keys));
    }
  }

  Tensor attend_self(std::size_t layer, const Tensor& qkv) override {
    const int64_t width = qkv.size(1) / 3;
    const std::size_t rows = static_cast<std::size_t>(qkv.size(0));
    TORCH_CHECK(qkv.is_contiguous());
    std::vector<Tensor>& steps = steps_[layer];
    steps.push_back(qkv);
    if (ancestors_.size() < steps.size()) {
      ancestors_.emplace_back(rows);
      std::iota(ancestors_.back().begin(), ancestors_.back().end(), 0);
    }
    const std::size_t length = steps.size();
    keys_.resize(rows * length);
    for (std::size_t t = 0; t < length; ++t) {
      const T* keys = detail::pointer<T>(steps[t]) + width;
      for (std::size_t r = 0; r < rows; ++r) {
        keys_[r * length + t] = keys + ancestors_[t][r] * 3 * width;
      }
    }
    first_.resize(rows);
    for (std::size_t r = 0; r < rows; ++r) first_[r] = static_cast<int32_t>(r * length);
    count_.assign(rows, static_cast<int32_t>(length));
    return attend({detail::pointer<T>(qkv), 3 * width, keys_.data(), first_.data(), count_.data(),
                   width, nullptr, memory_.heads, width / memory_.heads, nullptr},
                  static_cast<int64_t>(length), qkv);
  }

  Tensor attend_memory(std::size_t layer, const Tensor& query) override {
    const int64_t width = query.size(1);
    TORCH_CHECK(query.is_contiguous());
    return attend(
        {detail::pointer<T>(query), width, memory_keys_[layer].data(), memory_first_.data(),
         memory_count_.data(), width, nullptr, memory_.heads, width / memory_.heads, nullptr},
        memory_.source.longest, query);
  }

  void select(const std::vector<int32_t>& rows) override {
    auto reorder = [&](std::vector<int32_t>& of_row) {
      std::vector<int32_t> next;
      next.reserve(rows.size());
      for (int32_t row : rows) next.push_back(of_row[static_cast<std::size_t>(row)]);
      of_row = std::move(next);
    };
    for (std::vector<int32_t>& step : ancestors_) reorder(step);
    reorder(memory_first_);
    reorder(memory_count_);
  }

 private:
  // Fills in `out` and `scratch`; `longest`: the largest count.
  static Tensor attend(GatheredAttentionArgs<T> args, int64_t longest, const Tensor& query) {
    const int64_t rows = query.size(0), width = args.heads * args.head_width;
    const Tensor out = torch::empty({rows, width}, query.options());
    args.out = detail::pointer<T>(out);
    detail::parallel_rows(rows, 2 * width * longest, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(static_cast<std::size_t>(args.heads * longest + width));
      GatheredAttentionArgs<T> own = args;
      own.scratch = scratch.data();
      kernels().typed<T>().gathered_attention(own, begin, end);
    });
    return out;
  }

  DecoderMemory memory_;
  std::vector<std::vector<const T*>> memory_keys_;    // [layer][source token]
  std::vector<int32_t> memory_first_, memory_count_;  // [row]: its sentence in memory_keys_
  std::vector<std::vector<Tensor>> steps_;            // [layer][step]: qkv [rows then, 3 * d]
  std::vector<std::vector<int32_t>> ancestors_;       // [step][row now]: its row in that step
  std::vector<const T*> keys_;                        // of the present call, as first_ and count_
  std::vector<int32_t> first_, count_;
};

}  // namespace

std::unique_ptr<DecoderCache> make_packed_cache(DecoderMemory memory) {
  if (memory.key_value.at(0).scalar_type() == at::kBFloat16) {
    return std::make_unique<PackedCache<Bf16>>(std::move(memory));
  }
  return std::make_unique<PackedCache<float>>(std::move(memory));
}

}  // namespace lockstep

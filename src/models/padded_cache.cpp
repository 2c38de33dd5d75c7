// Implements the decoder's cache as padded arrays with libtorch operations. It is the reference,
// and the implementation for devices other than the CPU.
#include <algorithm>
#include <utility>

#include "models/decoder_state.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr int64_t kBlock = 32;  // positions by which the cache grows

struct KeyValue {
  Tensor key, value;
};

class PaddedCache : public DecoderCache {
 public:
  explicit PaddedCache(const DecoderMemory& memory)
      : heads_(memory.heads), past_(memory.key_value.size()) {
    const int64_t sentences = memory.source.sentences();
    for (const Tensor& packed : memory.key_value) {
      // [sentences, longest, 2 * d] -> twice [sentences, heads, longest, head width]
      std::vector<Tensor> parts = pad_segments(packed, memory.source).chunk(2, 2);
      for (Tensor& part : parts) {
        part = part.unflatten(2, {heads_, -1}).transpose(1, 2).contiguous();
      }
      memory_.push_back({parts[0], parts[1]});
    }
    visible_ = segment_mask(memory.source, memory_[0].key.device())
                   .view({sentences, 1, 1, memory.source.longest});
    for (int64_t s = 0; s < sentences; ++s) sentence_of_row_.push_back(static_cast<int32_t>(s));
  }

  Tensor attend_self(std::size_t layer, const Tensor& qkv) override {
    // query, key, value: [rows, heads, 1, head width]
    std::vector<Tensor> parts = qkv.view({qkv.size(0), 3, heads_, 1, -1}).unbind(1);
    KeyValue& past = past_[layer];
    const int64_t length = lengths_[layer]++;
    reserve(past, length, parts[1]);
    past.key.select(2, length).copy_(parts[1].squeeze(2));
    past.value.select(2, length).copy_(parts[2].squeeze(2));
    const Tensor mixed = at::scaled_dot_product_attention(
        parts[0], past.key.narrow(2, 0, length + 1), past.value.narrow(2, 0, length + 1));
    return mixed.flatten(1);
  }

  Tensor attend_memory(std::size_t layer, const Tensor& query) override {
    const KeyValue& memory = memory_[layer];
    const int64_t sentences = memory.key.size(0);
    // The rows of a sentence are its queries, so its keys are not repeated for every hypothesis.
    const Tensor q = query.view({sentences, -1, heads_, memory.key.size(3)}).transpose(1, 2);
    const Tensor mixed = at::scaled_dot_product_attention(q, memory.key, memory.value, visible_);
    return mixed.transpose(1, 2).reshape({query.size(0), -1});
  }

  void select(const std::vector<int32_t>& rows) override {
    std::vector<int64_t> kept_rows(rows.begin(), rows.end()), kept_sentences;
    std::vector<int32_t> sentence_of_row;
    for (int32_t row : rows) {
      const int64_t sentence = sentence_of_row_[static_cast<std::size_t>(row)];
      if (kept_sentences.empty() || kept_sentences.back() != sentence) {
        kept_sentences.push_back(sentence);
      }
      sentence_of_row.push_back(static_cast<int32_t>(kept_sentences.size()) - 1);
    }
    sentence_of_row_ = std::move(sentence_of_row);
    const Tensor row_index = torch::tensor(kept_rows).to(visible_.device());
    for (std::size_t layer = 0; layer < past_.size(); ++layer) {
      if (!past_[layer].key.defined()) continue;
      for (Tensor* t : {&past_[layer].key, &past_[layer].value}) {
        *t = reordered(*t, row_index, lengths_[layer]);
      }
    }
    if (static_cast<int64_t>(kept_sentences.size()) == visible_.size(0)) return;
    const Tensor sentence_index = torch::tensor(kept_sentences).to(visible_.device());
    for (KeyValue& memory : memory_) {
      memory.key = memory.key.index_select(0, sentence_index);
      memory.value = memory.value.index_select(0, sentence_index);
    }
    visible_ = visible_.index_select(0, sentence_index);
  }

 private:
  // Makes room for one more position: [rows, heads, capacity, head width].
  static void reserve(KeyValue& past, int64_t length, const Tensor& like) {
    if (past.key.defined() && length < past.key.size(2)) return;
    for (Tensor* t : {&past.key, &past.value}) {
      Tensor grown =
          torch::empty({like.size(0), like.size(1), length + kBlock, like.size(3)}, like.options());
      if (t->defined()) grown.narrow(2, 0, length).copy_(t->narrow(2, 0, length));
      *t = grown;
    }
  }

  static Tensor reordered(const Tensor& past, const Tensor& rows, int64_t length) {
    std::vector<int64_t> shape = past.sizes().vec();
    shape[0] = rows.size(0);
    Tensor out = torch::empty(shape, past.options());
    out.narrow(2, 0, length).copy_(past.narrow(2, 0, length).index_select(0, rows));
    return out;
  }

  int64_t heads_;
  std::vector<KeyValue> past_, memory_;
  std::vector<int64_t> lengths_ = std::vector<int64_t>(past_.size(), 0);
  Tensor visible_;  // bool [sentences, 1, 1, longest source]
  std::vector<int32_t> sentence_of_row_;
};

}  // namespace

std::unique_ptr<DecoderCache> make_padded_cache(const DecoderMemory& memory) {
  return std::make_unique<PaddedCache>(memory);
}

}  // namespace lockstep

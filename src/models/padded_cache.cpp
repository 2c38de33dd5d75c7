// Implements the decoder's cache as padded arrays with libtorch operations. It is the reference,
// and the implementation for devices other than the CPU.
#include <algorithm>
#include <limits>
#include <utility>

#include "models/decoder_state.h"
#include "nn/upload.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr int64_t kBlock = 32;  // positions by which the cache grows

struct KeyValue {
  Tensor key, value;
};

// What attention adds to the scores of keys: 0 where a sentence has a token, else minus infinity,
// [sentences, 1, 1, longest source or a little more]. A mask of bools would become this in every
// call, and be copied where the kernels of GPUs want its rows to begin at a multiple of 16 bytes.
Tensor bias_of(const Segments& source, const Tensor& like) {
  constexpr int64_t kAligned = 16;
  const int64_t sentences = source.sentences(), longest = source.longest;
  const int64_t room = (longest + kAligned - 1) / kAligned * kAligned;
  Tensor bias = torch::zeros({sentences, 1, 1, room}, like.options());
  const Tensor visible = segment_mask(source, like.device()).view({sentences, 1, 1, longest});
  bias.narrow(3, 0, longest)
      .masked_fill_(visible.logical_not(), -std::numeric_limits<float>::infinity());
  return bias;
}

class PaddedCache : public DecoderCache {
 public:
  explicit PaddedCache(const DecoderMemory& memory)
      : heads_(memory.heads), lengths_(memory.key_value.size(), 0) {
    const int64_t sentences = memory.source.sentences();
    for (const Tensor& packed : memory.key_value) {
      // [sentences, longest, 2 * d] -> twice [sentences, heads, longest, head width]
      std::vector<Tensor> parts = pad_segments(packed, memory.source).chunk(2, 2);
      for (Tensor& part : parts) {
        part = part.unflatten(2, {heads_, -1}).transpose(1, 2).contiguous();
      }
      memory_.push_back({parts[0], parts[1]});
    }
    bias_ = bias_of(memory.source, memory_[0].key);
    for (int64_t s = 0; s < sentences; ++s) sentence_of_row_.push_back(static_cast<int32_t>(s));
  }

  Tensor attend_self(std::size_t layer, const Tensor& qkv) override {
    const Tensor parts = qkv.view({qkv.size(0), 3, heads_, -1});
    const int64_t length = lengths_[layer]++;
    reserve(length, parts);
    const Tensor past = past_.select(0, static_cast<int64_t>(layer));
    past.select(3, length).copy_(parts.narrow(1, 1, 2).transpose(0, 1));
    const Tensor mixed = at::scaled_dot_product_attention(
        parts.narrow(1, 0, 1).transpose(1, 2), past.select(0, 0).narrow(2, 0, length + 1),
        past.select(0, 1).narrow(2, 0, length + 1));
    return mixed.flatten(1);
  }

  Tensor attend_memory(std::size_t layer, const Tensor& query) override {
    const KeyValue& memory = memory_[layer];
    const int64_t sentences = memory.key.size(0);
    // The rows of a sentence are its queries, so its keys are not repeated for every hypothesis.
    const Tensor q = query.view({sentences, -1, heads_, memory.key.size(3)}).transpose(1, 2);
    const Tensor mixed = at::scaled_dot_product_attention(q, memory.key, memory.value,
                                                          bias_.narrow(3, 0, memory.key.size(2)));
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
    if (past_.defined()) past_ = past_.index_select(2, there(kept_rows));
    if (static_cast<int64_t>(kept_sentences.size()) == bias_.size(0)) return;
    const Tensor sentence_index = there(kept_sentences);
    for (KeyValue& memory : memory_) {
      memory.key = memory.key.index_select(0, sentence_index);
      memory.value = memory.value.index_select(0, sentence_index);
    }
    bias_ = bias_.index_select(0, sentence_index);
  }

 private:
  Tensor there(const std::vector<int64_t>& rows) const {
    return upload(torch::tensor(rows), bias_.device());
  }

  // Makes room for one more position; like [rows, 3, heads, head width].
  void reserve(int64_t length, const Tensor& like) {
    if (past_.defined() && length < past_.size(4)) return;
    const Tensor grown =
        torch::empty({std::ssize(lengths_), 2, like.size(0), heads_, length + kBlock, like.size(3)},
                     like.options());
    if (past_.defined()) grown.narrow(4, 0, length).copy_(past_.narrow(4, 0, length));
    past_ = grown;
  }

  int64_t heads_;
  std::vector<int64_t> lengths_;  // of the layers, in positions
  Tensor past_;  // [layers, key and value, rows, heads, capacity, head width]: reordered as one
  std::vector<KeyValue> memory_;
  Tensor bias_;
  std::vector<int32_t> sentence_of_row_;
};

}  // namespace

std::unique_ptr<DecoderCache> make_padded_cache(const DecoderMemory& memory) {
  return std::make_unique<PaddedCache>(memory);
}

}  // namespace lockstep

// Decodes with packed weights on the CPU. The cache copies nothing: the projections of every step
// stay where their matrix product wrote them, a table says which row of which step each hypothesis
// descends from, and reordering the beams reorders only that table. The hypotheses of a sentence
// read the same keys and values of its source.
#include "models/packed_decoder.h"

#include <numeric>
#include <utility>

#include "nn/embedding.h"
#include "nn/fused.h"

namespace lockstep {
namespace {

using torch::Tensor;

// The keys to which every row attends, in the form that the kernel takes.
template <class T>
struct GatheredKeys {
  std::vector<const T*> keys;
  std::vector<int32_t> first, count;  // [rows]
  int64_t longest = 0;                // the largest count
};

// query: rows of which the first heads * head width elements are read.
template <class T>
Tensor attend(const Tensor& query, const GatheredKeys<T>& keys, int64_t width, int64_t heads) {
  const int64_t rows = query.size(0);
  const Tensor out = torch::empty({rows, width}, query.options());
  const GatheredAttentionArgs<T> args{detail::pointer<T>(query),
                                      query.size(1),
                                      keys.keys.data(),
                                      keys.first.data(),
                                      keys.count.data(),
                                      width,
                                      detail::pointer<T>(out),
                                      heads,
                                      width / heads,
                                      nullptr};
  detail::parallel_rows(rows, 2 * width * keys.longest, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(heads * keys.longest + width));
    GatheredAttentionArgs<T> own = args;
    own.scratch = scratch.data();
    kernels().typed<T>().gathered_attention(own, begin, end);
  });
  return out;
}

template <class T>
class PackedDecoder : public Decoder {
 public:
  PackedDecoder(const PackedTransformer& packed, const std::vector<std::vector<int32_t>>& sources,
                const std::vector<int64_t>& primer)
      : packed_(packed),
        width_(packed.model().config().d_model),
        heads_(packed.model().config().heads),
        rows_(static_cast<int64_t>(sources.size())),
        steps_(packed.decoder().size()) {
    c10::InferenceMode inference;
    const PackedSentences source = pack_sentences(sources, torch::kCPU);
    const Tensor encoded = packed.encode(source);
    const PackedInput input = packed.decoder().front().cross.memory.prepare(encoded);
    for (const PackedTransformer::Layer& layer : packed.decoder()) {
      memory_.push_back(layer.cross.memory.store(input, false));
    }
    longest_ = source.segments.longest;
    remember_source(source.segments);
    for (int64_t token : primer) step(torch::full({rows_}, token, torch::kInt64));
  }

  Tensor step(const Tensor& tokens) override;

  Candidates best(const Tensor& output, int64_t per_row,
                  const std::vector<int32_t>& excluded) const override {
    c10::InferenceMode inference;
    return best_candidates(packed_.table(), packed_.table().prepare(output), per_row, excluded);
  }

  Tensor logits(const Tensor& output) const override {
    c10::InferenceMode inference;
    const PackedLinear& table = packed_.table();
    const Tensor out = torch::empty({output.size(0), table.outputs()}, torch::kFloat);
    table.store_part(table.prepare(output), 0, table.outputs(), out);
    return out;
  }

  void select(const std::vector<int32_t>& rows) override {
    auto reorder = [&](std::vector<int32_t>& of_row) {
      std::vector<int32_t> next;
      next.reserve(rows.size());
      for (int32_t row : rows) next.push_back(of_row[static_cast<std::size_t>(row)]);
      of_row = std::move(next);
    };
    for (std::vector<int32_t>& step : ancestors_) reorder(step);
    reorder(sentence_of_row_);
    rows_ = std::ssize(rows);
  }

 private:
  void remember_source(const Segments& source);
  Tensor attend_self(std::size_t layer, const Tensor& qkv);
  Tensor attend_memory(std::size_t layer, const Tensor& query) const;

  struct Sentence {
    int64_t first, count;  // its source tokens
    int64_t keys;          // where its keys begin in memory_keys_
  };

  const PackedTransformer& packed_;
  int64_t width_, heads_, rows_;
  std::vector<Tensor> memory_;       // [layer]: [source tokens, 2 * d], key | value
  std::vector<Tensor> memory_keys_;  // [layer]: the keys transposed (kernels/kernel_table.h)
  std::vector<Sentence> sentences_;
  int64_t longest_ = 0;  // longest source, in tokens
  std::vector<int32_t> sentence_of_row_;
  std::vector<std::vector<Tensor>> steps_;       // [layer][step]: qkv [rows then, 3 * d]
  std::vector<std::vector<int32_t>> ancestors_;  // [step][current row]: its row in that step
  GatheredKeys<T> own_;                          // for the current call of attend_self
};

template <class T>
void PackedDecoder<T>::remember_source(const Segments& source) {
  int64_t offset = 0;
  for (std::size_t s = 0; s + 1 < source.offsets.size(); ++s) {
    const int64_t count = source.offsets[s + 1] - source.offsets[s];
    sentences_.push_back({source.offsets[s], count, offset});
    offset += width_ * padded_keys(count);
  }
  const at::ScalarType type = memory_.front().scalar_type();
  for (const Tensor& key_value : memory_) {
    const Tensor keys = torch::empty({offset}, type);
    for (const Sentence& s : sentences_) {
      kernels().typed<T>().transpose_keys({detail::pointer<T>(key_value) + s.first * 2 * width_,
                                           2 * width_, s.count, heads_, width_ / heads_,
                                           detail::pointer<T>(keys) + s.keys});
    }
    memory_keys_.push_back(keys);
  }
  sentence_of_row_.resize(static_cast<std::size_t>(rows_));
  std::iota(sentence_of_row_.begin(), sentence_of_row_.end(), 0);
}

// Rows of one sentence are neighbours, so they attend together.
template <class T>
Tensor PackedDecoder<T>::attend_memory(std::size_t layer, const Tensor& query) const {
  const Tensor out = torch::empty_like(query);
  const T* values = detail::pointer<T>(memory_[layer]) + width_;
  const T* keys = detail::pointer<T>(memory_keys_[layer]);
  std::vector<float> scratch(static_cast<std::size_t>(4 * (width_ + padded_keys(longest_))));
  for (std::size_t r = 0; r < sentence_of_row_.size();) {
    std::size_t end = r + 1;
    while (end < sentence_of_row_.size() && sentence_of_row_[end] == sentence_of_row_[r]) ++end;
    const Sentence& s = sentences_[static_cast<std::size_t>(sentence_of_row_[r])];
    const int64_t at = static_cast<int64_t>(r) * width_;
    kernels().typed<T>().shared_attention(
        {detail::pointer<T>(query) + at, keys + s.keys, values + s.first * 2 * width_, 2 * width_,
         s.count, detail::pointer<T>(out) + at, heads_, width_ / heads_, scratch.data()},
        static_cast<int64_t>(end - r));
    r = end;
  }
  return out;
}

template <class T>
Tensor PackedDecoder<T>::attend_self(std::size_t layer, const Tensor& qkv) {
  std::vector<Tensor>& steps = steps_[layer];
  steps.push_back(qkv);
  const std::size_t length = steps.size(), rows = static_cast<std::size_t>(rows_);
  own_.keys.resize(rows * length);
  for (std::size_t t = 0; t < length; ++t) {
    const T* keys = detail::pointer<T>(steps[t]) + width_;
    for (std::size_t r = 0; r < rows; ++r) {
      own_.keys[r * length + t] = keys + ancestors_[t][r] * 3 * width_;
    }
  }
  return attend(qkv, own_, width_, heads_);
}

template <class T>
Tensor PackedDecoder<T>::step(const Tensor& tokens) {
  c10::InferenceMode inference;
  TORCH_CHECK(tokens.size(0) == rows_, tokens.size(0), " tokens for ", rows_, " rows");
  const int64_t position = std::ssize(ancestors_), length = position + 1;
  ancestors_.emplace_back(static_cast<std::size_t>(rows_));
  std::iota(ancestors_.back().begin(), ancestors_.back().end(), 0);
  own_.longest = length;
  own_.count.assign(static_cast<std::size_t>(rows_), static_cast<int32_t>(length));
  own_.first.resize(static_cast<std::size_t>(rows_));
  for (int64_t r = 0; r < rows_; ++r) {
    own_.first[static_cast<std::size_t>(r)] = static_cast<int32_t>(r * length);
  }
  const std::vector<DecoderLayer>& layers = packed_.model().decoder();
  const Tensor positions = torch::full_like(tokens, position);
  PackedTransformer::Stream x = packed_.begin({packed_.model().table(), tokens, positions, length},
                                              layers.front().attention.norm);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PackedTransformer::Layer& layer = packed_.decoder()[i];
    const Tensor own = attend_self(i, layer.self.in(x.normed));
    packed_.finish_block(x, own, layer.self.out, {layers[i].attention.norm, layers[i].cross.norm});
    const Tensor query = layer.cross.in(x.normed);
    const Tensor other = attend_memory(i, query);
    packed_.finish_block(x, other, layer.cross.out,
                         {layers[i].cross.norm, layers[i].feed_forward.norm});
    packed_.feed_forward(
        x, layer.feed_forward,
        {layers[i].feed_forward.norm, packed_.model().norm_after_decoder_layer(i)});
  }
  return x.normed;
}

}  // namespace

std::unique_ptr<Decoder> make_packed_decoder(const PackedTransformer& packed,
                                             const std::vector<std::vector<int32_t>>& sources,
                                             const std::vector<int64_t>& primer) {
  if (packed.activations() == at::kBFloat16) {
    return std::make_unique<PackedDecoder<Bf16>>(packed, sources, primer);
  }
  return std::make_unique<PackedDecoder<float>>(packed, sources, primer);
}

}  // namespace lockstep

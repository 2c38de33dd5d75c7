// The cache copies nothing: the projections of every step stay where their matrix product wrote
// them, a table says which row of which step each hypothesis descends from, and reordering the
// beams reorders only that table. The hypotheses of a sentence read the same keys and values of its
// source.
#include "decode/packed_decoder.h"

#include <numeric>
#include <utility>

#include "decode/packed_blocks.h"

namespace lockstep {
namespace {

// The keys to which every row attends, in the form that the kernel takes.
template <class T>
struct GatheredKeys {
  std::vector<const T*> keys;
  std::vector<int32_t> first, count;  // [rows]
  int64_t longest = 0;                // the largest count
};

template <class T>
class PackedDecoder : public Decoder {
 public:
  PackedDecoder(const PackedTransformer& model, const Sentences& sources, const Threads& threads)
      : model_(model),
        threads_(threads),
        width_(model.shape.d_model),
        heads_(model.shape.heads),
        rows_(std::ssize(sources)),
        steps_(model.decoder.size()),
        blocks_(model, threads) {
    const SourceRows source(sources);
    PackedBlocks<T> encoder(model, threads);
    encoder.encode(source);
    remember_source(source, encoder);
    for (int64_t token : model.shape.primer) {
      step(std::vector<int64_t>(static_cast<std::size_t>(rows_), token));
    }
  }

  void step(const std::vector<int64_t>& tokens) override;

  Candidates best(int64_t per_row, const std::vector<int32_t>& excluded) override {
    return best_candidates(model_.output, blocks_.prepared(model_.output), per_row, excluded,
                           threads_);
  }

  std::vector<float> logits() override {
    const int64_t pieces = model_.output.outputs();
    std::vector<float> out(static_cast<std::size_t>(blocks_.rows() * pieces));
    model_.output.multiply_part(blocks_.prepared(model_.output), {0, pieces}, out.data(), pieces,
                                threads_);
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
  void remember_source(const SourceRows& source, PackedBlocks<T>& encoder);
  void begin_step();
  void attend_self(std::size_t layer, T* out);
  void attend_memory(std::size_t layer, const T* query, T* out);

  struct Sentence {
    int64_t first, count;  // its source tokens
    int64_t keys;          // where its keys begin in memory_keys_
  };

  const PackedTransformer& model_;
  const Threads& threads_;
  int64_t width_, heads_, rows_;
  std::vector<RowMemory> memory_;       // [layer]: [source tokens, 2 * d], key | value
  std::vector<RowMemory> memory_keys_;  // [layer]: the keys transposed (kernels/kernel_table.h)
  std::vector<Sentence> sentences_;
  int64_t longest_ = 0;  // longest source, in tokens
  std::vector<int32_t> sentence_of_row_;
  std::vector<std::vector<RowMemory>> steps_;    // [layer][step]: qkv [rows then, 3 * d]
  std::vector<std::vector<int32_t>> ancestors_;  // [step][current row]: its row in that step
  GatheredKeys<T> own_;                          // for the current call of attend_self
  PackedBlocks<T> blocks_;
  RowMemory query_, mixed_, scratch_;
};

template <class T>
void PackedDecoder<T>::remember_source(const SourceRows& source, PackedBlocks<T>& encoder) {
  longest_ = source.longest;
  int64_t offset = 0;
  for (std::size_t s = 0; s + 1 < source.offsets.size(); ++s) {
    const int64_t count = source.offsets[s + 1] - source.offsets[s];
    sentences_.push_back({source.offsets[s], count, offset});
    offset += width_ * padded_keys(count);
  }
  const PackedInput& input = encoder.prepared(model_.decoder.front().cross.memory);
  for (const PackedTransformer::Layer& layer : model_.decoder) {
    T* key_value = memory_.emplace_back().template room<T>(source.rows() * 2 * width_);
    layer.cross.memory.multiply(input, ProductEnd::kStore, key_value, threads_);
    T* keys = memory_keys_.emplace_back().template room<T>(offset);
    for (const Sentence& s : sentences_) {
      kernels().typed<T>().transpose_keys({key_value + s.first * 2 * width_, 2 * width_, s.count,
                                           heads_, width_ / heads_, keys + s.keys});
    }
  }
  sentence_of_row_.resize(static_cast<std::size_t>(rows_));
  std::iota(sentence_of_row_.begin(), sentence_of_row_.end(), 0);
}

// Rows of one sentence are neighbours, so they attend together.
template <class T>
void PackedDecoder<T>::attend_memory(std::size_t layer, const T* query, T* out) {
  const T* values = memory_[layer].template data<T>() + width_;
  const T* keys = memory_keys_[layer].template data<T>();
  float* scratch = scratch_.room<float>(4 * (width_ + padded_keys(longest_)));
  for (std::size_t r = 0; r < sentence_of_row_.size();) {
    std::size_t end = r + 1;
    while (end < sentence_of_row_.size() && sentence_of_row_[end] == sentence_of_row_[r]) ++end;
    const Sentence& s = sentences_[static_cast<std::size_t>(sentence_of_row_[r])];
    const int64_t at = static_cast<int64_t>(r) * width_;
    kernels().typed<T>().shared_attention(
        {query + at, keys + s.keys, values + s.first * 2 * width_, 2 * width_, s.count, out + at,
         heads_, width_ / heads_, scratch},
        static_cast<int64_t>(end - r));
    r = end;
  }
}

template <class T>
void PackedDecoder<T>::attend_self(std::size_t layer, T* out) {
  std::vector<RowMemory>& steps = steps_[layer];
  const T* qkv = steps.emplace_back().template room<T>(3 * rows_ * width_);
  blocks_.product(model_.decoder[layer].self.in, steps.back().template data<T>());
  const std::size_t length = steps.size(), rows = static_cast<std::size_t>(rows_);
  own_.keys.resize(rows * length);
  for (std::size_t t = 0; t < length; ++t) {
    const T* keys = steps[t].template data<T>() + width_;
    for (std::size_t r = 0; r < rows; ++r) {
      own_.keys[r * length + t] = keys + ancestors_[t][r] * 3 * width_;
    }
  }
  const GatheredAttentionArgs<T> args{
      qkv,    3 * width_, own_.keys.data(), own_.first.data(), own_.count.data(),
      width_, out,        heads_,           width_ / heads_,   nullptr};
  threads_.split_rows(rows_, 2 * width_ * own_.longest, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(heads_ * own_.longest + width_));
    GatheredAttentionArgs<T> own = args;
    own.scratch = scratch.data();
    kernels().typed<T>().gathered_attention(own, begin, end);
  });
}

// Makes place for one more position of every row.
template <class T>
void PackedDecoder<T>::begin_step() {
  ancestors_.emplace_back(static_cast<std::size_t>(rows_));
  std::iota(ancestors_.back().begin(), ancestors_.back().end(), 0);
  const int64_t length = std::ssize(ancestors_);
  own_.longest = length;
  own_.count.assign(static_cast<std::size_t>(rows_), static_cast<int32_t>(length));
  own_.first.resize(static_cast<std::size_t>(rows_));
  for (int64_t r = 0; r < rows_; ++r) {
    own_.first[static_cast<std::size_t>(r)] = static_cast<int32_t>(r * length);
  }
}

template <class T>
void PackedDecoder<T>::step(const std::vector<int64_t>& tokens) {
  begin_step();
  const int64_t length = own_.longest;
  blocks_.begin(tokens, std::vector<int64_t>(tokens.size(), length - 1), length,
                model_.decoder.front().self.norm, model_.decoder_table());
  T* query = query_.room<T>(rows_ * width_);
  T* mixed = mixed_.room<T>(rows_ * width_);
  for (std::size_t i = 0; i < model_.decoder.size(); ++i) {
    const auto& [self, cross, inner] = model_.decoder[i];
    attend_self(i, mixed);
    blocks_.finish_block(mixed, self.out, {self.norm, cross.norm});
    blocks_.product(cross.in, query);
    attend_memory(i, query, mixed);
    blocks_.finish_block(mixed, cross.out, {cross.norm, inner.norm});
    blocks_.feed_forward(inner, model_.norm_after_decoder_layer(i));
  }
}

}  // namespace

std::unique_ptr<Decoder> make_packed_decoder(const PackedTransformer& model,
                                             const Sentences& sources, const Threads& threads) {
  if (model.low()) return std::make_unique<PackedDecoder<Bf16>>(model, sources, threads);
  return std::make_unique<PackedDecoder<float>>(model, sources, threads);
}

DecodingModel packed_decoding(const PackedTransformer& model, const Threads& threads) {
  return {[&](const Sentences& sources) { return make_packed_decoder(model, sources, threads); },
          threads};
}

}  // namespace lockstep

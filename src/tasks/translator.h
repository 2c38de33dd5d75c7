// The Translator decodes sentences to hypotheses, by beam search or sampling, in
// the requested precision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenize/translation_tokenizer.h"
#include "models/decoder.h"
#include "tasks/beam_search.h"
#include "tasks/sampling.h"

namespace lockstep {

// Section [decoding] of the configuration.
struct DecodingConfig : BeamOptions {
  std::string precision = "trained";
  std::string method = "beam";
  SamplingOptions sampling;

  void describe(Fields& f) {
    f("precision", &precision, OneOf{{"trained", "fp32", "bf16", "int8"}},
      "weights while decoding; trained: as run.precision");
    f("method", &method, OneOf{{"beam", "sample"}}, "search for the best, or draw at random");
    BeamOptions::describe(f);
    sampling.describe(f);
  }
};

// Of a vocabulary that lockstep learned.
SpecialIds special_ids(const TranslationTokenizer& tokenizer);

class Translator {
 public:
  // Packs the weights of `model` as they are now, where our own kernels run (on the CPU, unless
  // they are switched off). `model` and `tokenizer` must outlive this. Throws ConfigError when the
  // precision is not possible here.
  struct Vocabulary {
    const TranslationTokenizer& tokenizer;
    SpecialIds special;
  };
  Translator(const Transformer& model, const Vocabulary& vocabulary, const DecodingConfig& config,
             const Numerics& numerics);

  // Returns the `count` best translations of every line, best first, or that many samples. Throws
  // ConfigError when count is greater than the beam.
  std::vector<std::vector<Hypothesis>> translate(const std::vector<std::string>& lines,
                                                 int64_t count = 1) const;

  // The two steps of translate(): ids in the form that the decoder takes, and their translations.
  std::vector<std::vector<int32_t>> encode(const std::vector<std::string>& lines) const;
  std::vector<std::vector<Hypothesis>> decode(const std::vector<std::vector<int32_t>>& sources,
                                              int64_t count = 1) const;

  std::string text(const Hypothesis& hypothesis) const { return tokenizer_.decode(hypothesis.ids); }

  int64_t packed_bytes() const { return packed_ == nullptr ? 0 : packed_->bytes(); }

 private:
  std::vector<int32_t> suppressed() const;

  const Transformer& model_;
  const TranslationTokenizer& tokenizer_;
  SpecialIds special_;
  DecodingConfig config_;
  Numerics numerics_;
  std::unique_ptr<PackedTransformer> packed_;
};

}  // namespace lockstep

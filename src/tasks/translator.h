// The Translator decodes sentences to hypotheses, by beam search or sampling, in
// the requested precision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/fields.h"
#include "data/tokenize/translation_tokenizer.h"
#include "decode/beam_search.h"
#include "decode/packed_transformer.h"
#include "kernels/kernel_table.h"
#include "models/decoder.h"
#include "models/transformer.h"
#include "tasks/sampling.h"

namespace lockstep {

// Section [decoding] of the configuration.
struct DecodingConfig : BeamOptions {
  std::string precision = "trained";
  std::string method = "beam";
  SamplingOptions sampling;

  void describe(Fields& f) {
    f("precision", &precision, OneOf{{"trained", "fp32", "bf16", "int8"}},
      "weights while decoding; trained: as run.precision, fp32 where bf16 is slower");
    f("method", &method, OneOf{{"beam", "sample"}}, "search for the best, or draw at random");
    f("beam_size", &beam_size, AtLeast{1}, "hypotheses kept; 1 is greedy search");
    f("length_penalty", &length_penalty, AtLeast{0}, "exponent of the length norm");
    f("length_norm", &length_norm, OneOf{{"wu", "tokens"}},
      "(5 + length) / 6, as Wu et al. 2016, or the length itself, as transformers");
    f("max_length_factor", &max_length_factor, AtLeast{0}, "longest output per source piece");
    f("max_length_extra", &max_length_extra, AtLeast{1}, "and so many tokens more");
    f("min_length", &min_length, AtLeast{0}, "tokens before </s> may come");
    f("batch_tokens", &batch_tokens, AtLeast{1}, "source tokens decoded together");
    f("stop", &stop, OneOf{{"all_beams", "first", "bound", "t2t", "full"}},
      "when a sentence is done: k hypotheses have finished; the first has; nothing better is "
      "possible; the rule of Tensor2Tensor; k have, whatever may follow");
    sampling.describe(f);
  }
};

// Returns what our own kernels decode in with decoding.precision = "trained": the precision of
// training, "fp32" or "bf16", but fp32 where that is the faster one.
std::string precision_as_trained(const std::string& trained, const Kernels& kernels);

// Returns what decoders begin with and leave out.
DecodingStart decoding_start(const SpecialIds& special);

// Returns `special.primer`, or what model.start asks for.
std::vector<int64_t> primer_of(const SpecialIds& special, const TransformerConfig& config);
// Returns what sources begin with: `source_prefix`, or <s> with model.start = "zero".
std::vector<int32_t> source_prefix_of(const SpecialIds& special, const TransformerConfig& config);

// Of a vocabulary that lockstep learned.
SpecialIds special_ids(const Subword& subword);

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

  // Whether several threads can decode at a time; and what decode() takes together.
  bool on_cpu() const { return model_.device().is_cpu(); }
  int64_t batch_tokens() const { return config_.batch_tokens; }

  int64_t packed_bytes() const { return packed_ == nullptr ? 0 : packed_->bytes(); }

 private:
  const Transformer& model_;
  const TranslationTokenizer& tokenizer_;
  SpecialIds special_;
  DecodingConfig config_;
  Numerics numerics_;
  std::unique_ptr<PackedTransformer> packed_;
};

}  // namespace lockstep

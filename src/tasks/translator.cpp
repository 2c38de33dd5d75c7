#include "tasks/translator.h"

#include "base/error.h"
#include "models/decoder.h"
#include "models/packing.h"

namespace lockstep {
namespace {

std::string trained_precision(const Numerics& numerics) {
  return numerics.compute == at::kBFloat16 ? "bf16" : "fp32";
}

}  // namespace

std::string precision_as_trained(const std::string& trained, const Kernels& kernels) {
  return trained == "bf16" && !kernels.fast_bf16 ? "fp32" : trained;
}

SpecialIds special_ids(const Subword& subword) {
  return {.pad = subword.pad_id(),
          .eos = subword.eos_id(),
          .bos = subword.bos_id(),
          .unk = subword.unk_id()};
}

DecodingStart decoding_start(const SpecialIds& special) {
  DecodingStart out{.primer = special.primer};
  if (special.renormalizes) out.suppressed = excluded_ids(special, false);
  return out;
}

std::vector<int64_t> primer_of(const SpecialIds& special, const TransformerConfig& config) {
  return DecodingStart{.primer = special.primer}.tokens(config);
}

std::vector<int32_t> source_prefix_of(const SpecialIds& special, const TransformerConfig& config) {
  return config.starts_with_zero() ? std::vector<int32_t>{special.bos} : special.source_prefix;
}

Translator::Translator(const Transformer& model, const Vocabulary& vocabulary,
                       const DecodingConfig& config, const Numerics& numerics)
    : model_(model),
      tokenizer_(vocabulary.tokenizer),
      special_(vocabulary.special),
      config_(config),
      numerics_(numerics) {
  config_.given_tokens = std::ssize(primer_of(special_, model.config()));
  const std::string trained = trained_precision(numerics);
  const bool packs = model.device().is_cpu() && numerics.fused && numerics.plain == 0;
  const std::string wanted = config.precision != "trained" ? config.precision
                             : packs ? precision_as_trained(trained, kernels())
                                     : trained;
  if (packs) {
    packed_ = std::make_unique<PackedTransformer>(
        pack_transformer(model, weight_format(wanted), decoding_start(special_)));
  } else if (wanted != trained) {
    throw ConfigError(
        "decoding.precision: {} decodes with lockstep's own kernels on the CPU only (run.device, "
        "run.fused, run.plain_operations); here expected {}, as trained",
        wanted, trained);
  }
}

std::vector<std::vector<Hypothesis>> Translator::translate(const std::vector<std::string>& lines,
                                                           int64_t count) const {
  return decode(encode(lines), count);
}

std::vector<std::vector<int32_t>> Translator::encode(const std::vector<std::string>& lines) const {
  std::vector<std::vector<int32_t>> sources;
  sources.reserve(lines.size());
  const std::vector<int32_t> prefix = source_prefix_of(special_, model_.config());
  for (const std::string& line : lines) {
    std::vector<int32_t> ids = tokenizer_.encode_source(line);
    // The search appends </s>; empty sentences stay empty.
    if (!ids.empty()) ids.insert(ids.begin(), prefix.begin(), prefix.end());
    sources.push_back(std::move(ids));
  }
  return sources;
}

std::vector<std::vector<Hypothesis>> Translator::decode(
    const std::vector<std::vector<int32_t>>& sources, int64_t count) const {
  const bool samples = config_.method == "sample";
  if (!samples && count > config_.beam_size) {
    throw ConfigError("{} translations a line: expected at most decoding.beam_size, which is {}",
                      count, config_.beam_size);
  }
  torch::InferenceMode inference;
  const DecodingModel model =
      decoding_model(model_, numerics_, packed_.get(), decoding_start(special_));
  if (!samples) return beam_search(model, sources, special_, config_, count);
  return sample_translations(model, sources, special_, config_, config_.sampling, count);
}

}  // namespace lockstep

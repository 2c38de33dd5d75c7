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

SpecialIds special_ids(const Subword& subword) {
  return {.pad = subword.pad_id(),
          .eos = subword.eos_id(),
          .bos = subword.bos_id(),
          .unk = subword.unk_id()};
}

Translator::Translator(const Transformer& model, const Subword& subword,
                       const DecodingConfig& config, const Numerics& numerics)
    : model_(model), subword_(subword), config_(config), numerics_(numerics) {
  const std::string trained = trained_precision(numerics);
  const std::string wanted = config.precision == "trained" ? trained : config.precision;
  if (model.device().is_cpu() && numerics.fused && numerics.plain == 0) {
    packed_ = std::make_unique<PackedTransformer>(pack_transformer(model, weight_format(wanted)));
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
  for (const std::string& line : lines) {
    sources.push_back(subword_.encode(line));
    // The search appends </s>; empty sentences stay empty.
    if (model_.config().starts_with_zero() && !sources.back().empty()) {
      sources.back().insert(sources.back().begin(), subword_.bos_id());
    }
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
  const SpecialIds special = special_ids(subword_);
  const DecodingModel model = decoding_model(model_, numerics_, packed_.get());
  if (!samples) return beam_search(model, sources, special, config_, count);
  return sample_translations(model, sources, special, config_, config_.sampling, count);
}

}  // namespace lockstep

#include "edge/edge_translator.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "decode/packed_decoder.h"

namespace lockstep {
namespace {

BeamOptions decoding_of(BeamOptions options, const std::vector<std::string>& settings) {
  static const std::vector<std::string> keys = {
      "beam_size",    "length_penalty", "max_length_factor", "max_length_extra", "min_length",
      "batch_tokens", "stop",           "length_norm"};
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw ConfigError("\"{}\": expected key=value, such as beam_size=5", setting);
    }
    std::string_view key = std::string_view(setting).substr(0, equals);
    if (key.starts_with("decoding.")) key.remove_prefix(9);
    if (set_decoding_key(options, key, std::string_view(setting).substr(equals + 1))) continue;
    throw ConfigError("{}: no setting of beam search{} ({})", key, did_you_mean(key, keys),
                      join(keys, ", "));
  }
  return options;
}

std::unique_ptr<Threads> make_threads(int64_t count) {
  constexpr int64_t kMost = 1024;
  if (count < 0 || count > kMost) {
    throw ConfigError("threads: expected a number from 0 to {}, got {}", kMost, count);
  }
  if (count == 0) count = std::max<int64_t>(1, std::thread::hardware_concurrency());
  if (count == 1) return std::make_unique<OneThread>();
  return std::make_unique<PoolThreads>(count);
}

}  // namespace

EdgeTranslator::EdgeTranslator(const fs::path& folder, const Options& options)
    : folder_(folder),
      decoding_(decoding_of(folder_.header().decoding, options.settings)),
      n_best_(options.n_best),
      tokenizer_(folder_.tokenizer()),
      threads_(make_threads(options.threads)),
      model_(packed_decoding(folder_.model(), *threads_)) {
  if (n_best_ < 1 || n_best_ > decoding_.beam_size) {
    throw ConfigError("{} translations a line: expected 1 to decoding.beam_size, which is {}",
                      n_best_, decoding_.beam_size);
  }
  decoding_.given_tokens = std::ssize(folder_.model().shape.primer);
}

std::vector<std::vector<EdgeTranslator::Translation>> EdgeTranslator::translate(
    const std::vector<std::string>& lines, int64_t first_line) const {
  Sentences sources;
  const std::vector<int32_t> prefix = folder_.source_prefix();
  for (const std::string& line : lines) {
    if (auto at = invalid_utf8_at(line)) {
      throw DataError("line {}:{}: byte 0x{:02x} is not valid UTF-8",
                      first_line + std::ssize(sources), *at + 1,
                      static_cast<unsigned char>(line[*at]));
    }
    std::vector<int32_t> ids = tokenizer_.encode_source(line);
    // The search appends </s>; empty sentences stay empty.
    if (!ids.empty()) ids.insert(ids.begin(), prefix.begin(), prefix.end());
    sources.push_back(std::move(ids));
  }
  std::vector<std::vector<Translation>> out;
  for (const std::vector<Hypothesis>& found :
       beam_search(model_, sources, folder_.header().special, decoding_, n_best_)) {
    std::vector<Translation>& of_line = out.emplace_back();
    for (const Hypothesis& h : found) {
      of_line.push_back({tokenizer_.decode(h.ids), h.score, std::ssize(h.ids)});
    }
  }
  return out;
}

}  // namespace lockstep

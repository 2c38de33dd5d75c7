// Implements the uses of a trained translation model: evaluation by translation, and translating.
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "batches/shared_files.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "tasks/scoring.h"
#include "tasks/sentence_groups.h"
#include "tasks/translation.h"

namespace lockstep {

namespace {

// Source tokens decoded together when ranks share them: few enough for every rank to get some.
constexpr int64_t kSharedTokens = 1024;

}  // namespace

const std::vector<MetricKind>& Translation::metrics() const {
  static const std::vector<MetricKind> kinds = {{"bleu", true, 100},   {"chrf", true, 100},
                                                {"loss", false},       {"nll", false},
                                                {"perplexity", false}, {"accuracy", true}};
  return kinds;
}

Evaluation Translation::evaluate(World& world, const EvaluationRequest& request) {
  auto wants = [&](std::initializer_list<const char*> names) {
    return request.metrics.empty() ||
           std::find_first_of(request.metrics.begin(), request.metrics.end(), names.begin(),
                              names.end()) != request.metrics.end();
  };
  if (!context_.run_folder.empty()) {  // in training, open() has done it
    fetch_missing_files(&world, config_.corpus,
                        [this] { return read_manifest(config_.corpus).files; });
  }
  Evaluation out;
  out.summary = request.split;
  if (wants({"bleu", "chrf"})) measure_translation(world, request, out);
  if (out.broken_off) return out;
  measure_loss(world, request, out);  // costs little compared with decoding
  return out;
}

void Translation::measure_translation(World& world, const EvaluationRequest& request,
                                      Evaluation& out) {
  Manifest manifest = read_manifest(config_.corpus);
  auto file_of = [&](const std::string& language) {
    return fs::path(config_.corpus) / (request.split + "." + language);
  };
  fs::path source_file = file_of(manifest.source_language);
  fs::path reference_file = file_of(manifest.target_language);
  std::vector<std::string> source = read_lines(source_file), reference = read_lines(reference_file);
  if (source.size() != reference.size()) {
    throw DataError("{} has {} lines, {} has {}: expected one reference for each line",
                    source_file.string(), source.size(), reference_file.string(), reference.size());
  }
  if (request.limit > 0 && static_cast<int64_t>(source.size()) > request.limit) {
    source.resize(static_cast<std::size_t>(request.limit));
    reference.resize(static_cast<std::size_t>(request.limit));
  }
  std::vector<std::string> output = translate_until_stopped(world, source, request);
  if (breaks_off(world, request)) {
    out.broken_off = true;
    return;
  }
  Bleu bleu;
  BleuScore score = bleu.corpus(output, {reference});
  out.metrics["bleu"] = score.score;
  out.metrics["chrf"] = Chrf().corpus(output, {reference});
  out.summary += fmt::format(" {}  chrF {:.2f}", bleu.format(score, 1, 2), out.metrics["chrf"]);
  std::size_t samples = std::min(static_cast<std::size_t>(request.samples), output.size());
  for (std::size_t i = 0; i < samples; ++i) {
    std::size_t at = i * output.size() / samples;
    out.samples.push_back({source[at], reference[at], output[at]});
  }
}

std::string Translation::model_text() const {
  return fmt::format("{} weights, {}+{} layers of width {}, beam of {}",
                     with_commas(parameters_.count()), config_.model.encoder_layers,
                     config_.model.decoder_layers, config_.model.d_model,
                     config_.decoding.beam_size);
}

std::unique_ptr<Translator> Translation::translator() const {
  return std::make_unique<Translator>(*model_, Translator::Vocabulary{*tokenizer_, special_},
                                      config_.decoding, use_numerics());
}

std::vector<std::string> Translation::translate(const std::vector<std::string>& lines) const {
  const std::unique_ptr<Translator> with = translator();
  std::vector<std::string> out;
  out.reserve(lines.size());
  for (const auto& best : with->translate(lines)) out.push_back(with->text(best.front()));
  return out;
}

std::vector<ScoredPair> Translation::score(const std::vector<std::string>& sources,
                                           const std::vector<std::string>& targets) const {
  std::vector<PairIds> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    pairs.push_back(
        {tokenizer_->encode_source(sources[i]), tokenizer_->encode_target(targets.at(i))});
  }
  const auto scores = score_pairs(*model_, pairs, special_, use_numerics());
  std::vector<ScoredPair> out;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ScoredPair scored{{}, scores[i]};
    for (int32_t id : pairs[i].target) scored.pieces.push_back(tokenizer_->piece(id));
    scored.pieces.push_back(tokenizer_->piece(special_.eos));
    out.push_back(std::move(scored));
  }
  return out;
}

std::vector<std::string> Translation::translate_shared(
    World& world, const std::vector<std::string>& lines) const {
  return translate_until_stopped(world, lines, {});
}

std::vector<std::string> Translation::translate_until_stopped(
    World& world, const std::vector<std::string>& lines, const EvaluationRequest& request) const {
  const std::unique_ptr<Translator> with = translator();
  std::vector<std::vector<int32_t>> sources = with->encode(lines);
  int64_t tokens = std::min(config_.decoding.batch_tokens, kSharedTokens);
  std::vector<std::vector<std::size_t>> groups = group_by_length(sources, tokens);
  std::vector<std::size_t> mine = own_groups(groups, sources, {world.rank(), world.size()});
  // One thread decodes each group, so that the number of threads does not affect either what is
  // decoded together.
  std::vector<std::vector<std::string>> decoded(mine.size());
  std::atomic<std::size_t> next = 0;  // groups differ in time, so each thread takes the next one
  auto decode_groups = [&](int64_t, int64_t) {
    for (std::size_t i; (i = next++) < mine.size() && !request.is_stopped();) {
      std::vector<std::vector<int32_t>> group;
      for (std::size_t s : groups[mine[i]]) group.push_back(sources[s]);
      for (const auto& best : with->decode(group)) decoded[i].push_back(with->text(best.front()));
    }
  };
  if (model_->device().is_cpu()) {
    at::parallel_for(0, at::get_num_threads(), 1, decode_groups);
  } else {
    decode_groups(0, 1);
  }
  nlohmann::json found = nlohmann::json::array();  // [[place, translation], ...]
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t k = 0; k < decoded[i].size(); ++k) {
      found.push_back({groups[mine[i]][k], decoded[i][k]});
    }
  }
  std::vector<std::string> out(lines.size());
  for (const std::string& part : world.all_gather_strings(found.dump())) {
    for (const nlohmann::json& item : nlohmann::json::parse(part)) {
      out[item.at(0).get<std::size_t>()] = item.at(1);
    }
  }
  return out;
}

}  // namespace lockstep

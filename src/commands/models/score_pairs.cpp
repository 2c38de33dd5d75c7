#include "commands/models/score_pairs.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/log.h"
#include "base/text.h"
#include "commands/models/translation_model.h"
#include "commands/process/mirrored_run.h"
#include "commands/process/process_setup.h"
#include "metrics/perplexity.h"

namespace lockstep {

namespace {

void print_pair(const ScoredPair& pair, bool tokens) {
  const double total =
      std::accumulate(pair.log_probability.begin(), pair.log_probability.end(), 0.0);
  if (!tokens) {
    fmt::print("{:.6f}\n", total);
    return;
  }
  nlohmann::ordered_json line{{"log_probability", total}, {"tokens", nlohmann::json::array()}};
  for (std::size_t i = 0; i < pair.pieces.size(); ++i) {
    line["tokens"].push_back({pair.pieces[i], pair.log_probability[i]});
  }
  fmt::print("{}\n", line.dump());
}

}  // namespace

int score_pairs_command(const Arguments& arguments) {
  std::vector<std::string> words;
  SavedRunOptions options;
  bool tokens = false;
  CommandLine app("Prints the log-probability (natural, </s> included) of each given translation.",
                  "lockstep score-pairs");
  app.add_option("words", words, "RUN SOURCE TARGET: two files of as many lines (plain or .gz)");
  app.add_option("--checkpoint", options.checkpoint, kCheckpointHelp)->capture_default_str();
  app.add_flag("--tokens", tokens, "a JSON object a line, with that of every piece");
  if (!app.parse(arguments)) return kExitOk;
  options.words = take_settings(words);
  if (words.size() != 3) throw ConfigError("score-pairs: expected RUN SOURCE TARGET");
  const std::vector<std::string> source = read_lines(words[1]), target = read_lines(words[2]);
  if (source.size() != target.size()) {
    throw DataError("{} has {} lines, {} has {}: expected one translation for each line", words[1],
                    source.size(), words[2], target.size());
  }

  prepare_process({});
  const SavedRun run = open_saved_run(local_run(words.front(), options), options);
  const TranslationUse& model = translation_of(run, words.front());
  double sum = 0;
  int64_t count = 0;
  for (const ScoredPair& pair : model.score(source, target)) {
    print_pair(pair, tokens);
    sum += std::accumulate(pair.log_probability.begin(), pair.log_probability.end(), 0.0);
    count += std::ssize(pair.log_probability);
  }
  if (count > 0) {
    const double nll = -sum / static_cast<double>(count);
    log_info("{} pairs, {} tokens: nll {:.6f}, perplexity {:.3f}", source.size(), count, nll,
             perplexity(nll));
  }
  return kExitOk;
}

}  // namespace lockstep

#include "commands/runs/train_arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "train/mirror/mirror_reading.h"

namespace lockstep {

namespace {

// "--resume=ADDRESS" and "--resume ADDRESS" mean the same.
void take_address(TrainArguments& parsed) {
  if (is_store_address(parsed.resume)) {
    parsed.resume_from = std::exchange(parsed.resume, kGivenAlone);
  }
  const auto word = std::find_if(parsed.words.begin(), parsed.words.end(), is_store_address);
  if (word == parsed.words.end() || parsed.resume.empty()) return;
  parsed.resume_from = *word;
  parsed.words.erase(word);
}

}  // namespace

bool parse_train(const Arguments& arguments, TrainArguments& parsed) {
  CommandLine app("Trains what a configuration describes, as one rank of a run.", "lockstep train");
  app.add_option("words", parsed.words, "CONFIG.toml and key=value words that override it");
  app.add_flag("--resume,--continue", parsed.resume,
               "go on from the newest complete checkpoint; --resume=auto: or start where there is "
               "no run; --resume=ADDRESS: from a run's checkpoint.mirror");
  app.add_flag("--dry-run", parsed.dry_run, "check the configuration, print all of it, stop");
  app.add_option("--bench-steps", parsed.bench_steps,
                 "take so many steps, print how fast they were, keep nothing")
      ->non_negative();
  app.add_option("--bench-start", parsed.bench_start, "steps of these that only warm up")
      ->non_negative()
      ->capture_default_str();
  app.add_option("--expect-hosts", parsed.expected_hosts,
                 "refuse to train when the ranks run on another number of machines")
      ->non_negative();
  app.add_option("--bench-ranks", parsed.bench_ranks,
                 "split each step as among so many ranks: what one of them would compute")
      ->positive();
  app.add_option("--bench-json", parsed.bench_json,
                 "write what was measured to this file, -: to the output (docs/before-a-run.md)");
  app.add_flag("-v,--verbose", parsed.verbose, "more on the console");
  if (!app.parse(arguments)) return false;
  take_address(parsed);
  return true;
}

void check_train_arguments(const TrainArguments& a, int ranks) {
  if (!a.resume.empty() && a.resume != kGivenAlone && a.resume != kResumeAuto) {
    throw ConfigError(
        "--resume={}: expected --resume or --resume=auto, or an address such as s3://BUCKET/RUN",
        a.resume);
  }
  if (a.expected_hosts > ranks) {
    throw ConfigError("--expect-hosts {}: there {} only {} rank{}", a.expected_hosts,
                      ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s");
  }
  if (a.bench_steps > 0 && a.bench_start >= a.bench_steps) {
    throw ConfigError(
        "--bench-steps {}: expected more steps than the {} that warm up (--bench-start)",
        a.bench_steps, a.bench_start);
  }
  if (a.benchmark() && !a.resume.empty()) {
    throw ConfigError("--bench-steps and --resume: a benchmark begins anew and keeps nothing");
  }
  if (!a.benchmark() && (a.bench_ranks > 0 || !a.bench_json.empty())) {
    throw ConfigError("--bench-ranks and --bench-json: only with --bench-steps");
  }
}

std::string take_config_file(const TrainArguments& arguments, std::vector<std::string>& settings) {
  std::vector<std::string> words = arguments.words;
  settings = take_settings(words);
  if (words.size() != 1) {
    throw ConfigError(
        "train: expected one configuration file and key=value words, got {} files{}; see: lockstep "
        "train --help",
        words.size(), words.empty() ? "" : " (" + fmt::format("{}", fmt::join(words, ", ")) + ")");
  }
  return words.front();
}

RunConfig read_train_config(const TrainArguments& arguments) {
  std::vector<std::string> settings;
  std::vector<std::string> words = arguments.words;
  if (!arguments.resume_from.empty()) {
    settings = take_settings(words);
    if (words.empty()) {
      MirroredRun run(arguments.resume_from);
      ConfigSource source = ConfigSource::from_text(run.config(), run.address() + "/config.toml");
      for (const std::string& word : settings) source.override_with(word);
      return read_run_config(std::move(source));
    }
    settings.clear();
  }
  const std::string file = take_config_file(arguments, settings);
  return read_run_config(file, settings);
}

}  // namespace lockstep

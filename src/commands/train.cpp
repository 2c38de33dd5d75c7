#include "commands/train.h"

#include <fmt/ranges.h>

#include "base/log.h"
#include "commands/session.h"
#include "train/benchmark.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

struct TrainArguments {
  std::vector<std::string> words;
  bool resume = false, dry_run = false, verbose = false;
  int64_t bench_steps = 0, bench_start = 10;  // OpenSeq2Seq's names

  bool benchmark() const { return bench_steps > 0; }
};

// After a start that worked: micro-batches may have been fitted to memory. A resume may have
// changed more, and keeps the former configuration under a number.
void update_config(const RunFolder& folder, const std::string& config, bool resumed) {
  if (read_file(folder.config()) == config) return;
  if (!resumed) return write_file(folder.config(), config);
  int number = 1;
  auto kept = [&] { return folder.path() / fmt::format("config.{}.toml", number); };
  while (fs::exists(kept())) ++number;
  fs::rename(folder.config(), kept());
  write_file(folder.config(), config);
  log_info("the configuration changed; the former one is kept as {}", kept().string());
}

RunConfig read_config(const TrainArguments& arguments) {
  std::vector<std::string> words = arguments.words;
  std::vector<std::string> settings = take_settings(words);
  if (words.size() != 1) {
    throw ConfigError(
        "train: expected one configuration file and key=value words, got {} files{}; see: lockstep "
        "train --help",
        words.size(), words.empty() ? "" : " (" + fmt::format("{}", fmt::join(words, ", ")) + ")");
  }
  return read_run_config(words.front(), settings);
}

// Rank 0 prints what was measured.
int run_benchmark(Trainer& trainer, World& world, const RunConfig& config, int64_t start) {
  std::vector<StepRecord> records;
  if (world.is_leader()) {
    trainer.add_observer(std::make_unique<BenchmarkObserver>(start, records));
  }
  handle_stop_signals();
  int signal = trainer.run();
  std::vector<int64_t> peaks;
  for (const std::string& peak : world.all_gather_strings(std::to_string(peak_resident_bytes()))) {
    peaks.push_back(std::stoll(peak));
  }
  if (!records.empty()) fmt::print("{}", benchmark_report(records, peaks, config.task->unit()));
  return signal == 0 ? kExitOk : 128 + signal;
}

int run_training(RunConfig& config, const LaunchEnvironment& environment,
                 const TrainArguments& arguments) {
  RunFolder folder(config.run.folder);
  WorldOptions options;
  options.timeout = std::chrono::seconds(config.comm.timeout_seconds);
  options.connect_timeout = options.timeout;
  options.shared_memory = config.comm.shared_memory;
  torch::Device device =
      choose_device(config.run.device, environment.local_rank, environment.local_size);
  options.device = device.is_cuda() ? "cuda" : "cpu";
  World world(environment, options);
  configure_log({.console = world.is_leader(),
                 .level = arguments.verbose ? LogLevel::kDebug : LogLevel::kInfo,
                 .file = arguments.benchmark() ? fs::path() : folder.log_of(world.rank())});
  Trainer trainer(config, world, folder,
                  {.resume = arguments.resume, .benchmark_steps = arguments.bench_steps});
  if (arguments.benchmark()) return run_benchmark(trainer, world, config, arguments.bench_start);
  if (world.is_leader()) update_config(folder, config.to_toml(), arguments.resume);
  handle_stop_signals();  // until here a signal ends the process at once: nothing is lost
  int signal = trainer.run();
  if (signal == 0) return kExitOk;
  log_info("stopped by signal {} after saving a checkpoint; --resume goes on", signal);
  return 128 + signal;
}

// Makes the run folder, or finds it where a run goes on.
void open_folder(const RunFolder& folder, RunConfig& config, const TrainArguments& arguments) {
  if (!arguments.resume) {
    folder.create(config.to_toml(), version_text());
  } else if (!fs::exists(folder.config())) {
    ConfigError error("{}: holds no run to go on with", folder.path().string());
    error.set_advice("without --resume, to start one there");
    throw error;
  } else {
    std::error_code failed;  // one that `lockstep average` wrote has no logs yet
    fs::create_directories(folder.logs(), failed);
  }
}

void check_arguments(const TrainArguments& a) {
  if (a.bench_steps > 0 && a.bench_start >= a.bench_steps) {
    throw ConfigError(
        "--bench-steps {}: expected more steps than the {} that warm up (--bench-start)",
        a.bench_steps, a.bench_start);
  }
  if (a.benchmark() && a.resume) {
    throw ConfigError("--bench-steps and --resume: a benchmark begins anew and keeps nothing");
  }
}

}  // namespace

int train(const Arguments& arguments) {
  TrainArguments parsed;
  CLI::App app("Trains what a configuration describes, as one rank of a run.", "lockstep train");
  app.add_option("words", parsed.words, "CONFIG.toml and key=value words that override it");
  app.add_flag("--resume,--continue", parsed.resume, "go on from the newest complete checkpoint");
  app.add_flag("--dry-run", parsed.dry_run, "check the configuration, print all of it, stop");
  app.add_option("--bench-steps", parsed.bench_steps,
                 "take so many steps, print how fast they were, keep nothing")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--bench-start", parsed.bench_start, "steps of these that only warm up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("-v,--verbose", parsed.verbose, "more on the console");
  if (!parse_arguments(app, arguments)) return kExitOk;

  LaunchEnvironment environment = detect_launch_environment();
  RunConfig config;
  try {
    check_arguments(parsed);
    config = read_config(parsed);
  } catch (const ConfigError&) {
    if (environment.local_rank == 0) throw;
    return kExitConfig;  // the host's first rank says the same
  }
  if (parsed.dry_run) {
    if (environment.rank == 0) fmt::print("{}", config.to_toml());
    return kExitOk;
  }
  prepare_process(environment);
  if (parsed.benchmark()) return run_training(config, environment, parsed);
  RunFolder folder(config.run.folder);
  if (environment.rank == 0) open_folder(folder, config, parsed);
  try {
    return run_training(config, environment, parsed);
  } catch (const Error& error) {
    std::error_code ignored;
    fs::create_directories(folder.logs(), ignored);
    write_file(folder.error_of(environment.rank), "error: " + error.describe() + "\n");
    throw;
  }
}

}  // namespace lockstep

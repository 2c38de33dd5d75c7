#include "commands/runs/train.h"

#include <unistd.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "commands/process/process_setup.h"
#include "commands/runs/second_home.h"
#include "commands/runs/train_arguments.h"
#include "dist/collectives/job_checks.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/peer_error.h"
#include "nn/device_error.h"
#include "train/folder/run_lock.h"
#include "train/listeners/benchmark.h"
#include "train/loop/trainer.h"

namespace lockstep {

namespace {

// For a process that still trains in the folder to end: it learns within `comm.lost_seconds` (5)
// that its peers are gone.
constexpr std::chrono::seconds kPatience{10};

// What is open while a process trains.
struct OpenRun {
  SecondHome home;
  std::unique_ptr<RunLock> lock;  // rank 0's
  bool found = false;             // rank 0's folder held the run before
};

// Returns whether there must be a run to go on with, on whichever machine.
bool needs_run(const TrainArguments& arguments, const LaunchEnvironment& environment) {
  return !arguments.resume.empty() && !arguments.begins_or_resumes() && environment.attempt == 0;
}

// Returns whether to resume: an attempt after the first continues where the previous one stopped.
bool goes_on(const TrainArguments& arguments, const LaunchEnvironment& environment) {
  return (!arguments.resume.empty() || environment.attempt > 0) && !arguments.benchmark();
}

// Call this after a successful start: the precision is chosen, and micro-batches may have been
// fitted to memory. A resume may have changed more; it keeps the former configuration under a
// number.
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

struct Benchmark {
  const TrainArguments& arguments;
  std::string unit;          // of the targets
  const BucketClock& clock;  // the trainer's
};

// "-" means a line of standard output.
void write_measurement(const RunMeasurement& measurement, const std::string& path) {
  const std::string text = to_json(measurement).dump() + "\n";
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    write_file(path, text);
  }
}

// Runs the benchmark; rank 0 prints what was measured.
int run_benchmark(Trainer& trainer, World& world, const Benchmark& benchmark) {
  const TrainArguments& arguments = benchmark.arguments;
  std::vector<StepRecord> records;
  std::vector<std::vector<MeasuredBucket>> buckets;
  if (world.is_leader()) {
    const int64_t start = arguments.bench_start;
    trainer.add_observer(std::make_unique<BenchmarkObserver>(start, records));
    trainer.add_observer(std::make_unique<BucketObserver>(start, benchmark.clock, buckets));
  }
  handle_stop_signals();
  int signal = trainer.run();
  std::vector<int64_t> peaks;
  for (const std::string& peak : world.all_gather_strings(std::to_string(peak_resident_bytes()))) {
    peaks.push_back(std::stoll(peak));
  }
  if (!arguments.bench_json.empty() && signal == 0) {
    RunMeasurement measurement = trainer.measure();
    add_steps(records, buckets, measurement);
    measurement.peak_bytes = peaks;
    if (world.is_leader()) write_measurement(measurement, arguments.bench_json);
  }
  if (!records.empty() && arguments.bench_json != "-")
    fmt::print("{}", benchmark_report(records, peaks, benchmark.unit));
  return signal == 0 ? kExitOk : 128 + signal;
}

void write_error(const RunFolder& folder, int rank, const Error& error) {
  std::error_code ignored;
  fs::create_directories(folder.logs(), ignored);
  write_file(folder.error_of(rank), "error: " + error.describe() + "\n");
}

// Whether a thread of this process still waits for a disk, as nothing can end it.
bool leaves_a_thread = false;

int train_in(World& world, RunConfig& config, const RunFolder& folder,
             const TrainArguments& arguments, const OpenRun& run) {
  bring_checkpoint(world, run.home, folder);
  BucketClock clock;
  Trainer trainer(config, world, folder,
                  {.resume = goes_on(arguments, world.environment()),
                   .needs_run = needs_run(arguments, world.environment()),
                   .found_run = run.found,
                   .stop_if_finished = arguments.begins_or_resumes(),
                   .benchmark_steps = arguments.bench_steps,
                   .benchmark_ranks = arguments.bench_ranks,
                   .bucket_clock = arguments.bench_json.empty() ? nullptr : &clock});
  if (arguments.benchmark()) {
    return run_benchmark(trainer, world, {arguments, config.task->unit(), clock});
  }
  if (!trainer.finished().empty()) {
    log_info("{}: the run is finished ({}); nothing is left to do", folder.path().string(),
             trainer.finished());
    return kExitOk;
  }
  if (trainer.keeps_folder()) update_config(folder, config.to_toml(), trainer.has_history());
  if (auto observer = run.home.observer(folder)) trainer.add_observer(std::move(observer));
  handle_stop_signals();  // earlier, a signal ends the process at once: nothing is lost
  int signal = trainer.run();
  if (signal == 0) return kExitOk;
  log_info("stopped by signal {} after saving a checkpoint; --resume goes on", signal);
  leaves_a_thread = trainer.waits_for_data();
  return 128 + signal;
}

int run_training(RunConfig& config, const LaunchEnvironment& environment,
                 const TrainArguments& arguments, const OpenRun& run) {
  RunFolder folder(config.run.folder);
  WorldOptions options;
  options.timeout = std::chrono::seconds(config.comm.timeout_seconds);
  options.connect_timeout = options.timeout;
  options.shared_memory = config.comm.shared_memory;
  options.streams = static_cast<int>(config.comm.streams);
  options.lost_seconds = config.comm.lost_seconds;
  options.stall_seconds = config.comm.stall_seconds;
  torch::Device device = choose_device(config, environment.local_rank, environment.local_size);
  options.device = device.is_cpu() ? "cpu" : "cuda";
  options.through_host = config.comm.shares_gpus();
  World world(environment, options);
  require_machines(world, arguments.expected_hosts);
  if (!arguments.benchmark()) folder.make();  // this machine may not see rank 0's
  configure_log({.console = world.is_leader(),
                 .level = arguments.verbose ? LogLevel::kDebug : LogLevel::kInfo,
                 .file = arguments.benchmark() ? fs::path() : folder.log_of(world.rank())});
  const std::string who = fmt::format("rank {} of {}", world.rank(), world.size());
  world.heartbeat().when_stuck([&](const RankVerdict& verdict) {
    MachineError error =
        verdict_error(verdict, who, "its own work, which it did not leave in time");
    if (!arguments.benchmark()) write_error(folder, world.rank(), error);
    fmt::print(stderr, "error: {}\n", error.describe());
  });
  try {
    return train_in(world, config, folder, arguments, run);
  } catch (const Error& error) {
    // All ranks find this in the same sums; none is to be the failure that the others name.
    if (error.exit_code() == kExitDiverged) world.say_farewell();
    world.heartbeat().report_failure(error.describe());
    throw;
  } catch (const std::exception& exception) {  // NCCL's error when it is interrupted
    auto verdict = world.heartbeat().verdict();
    if (verdict) throw verdict_error(*verdict, who, plain_text_of(exception));
    const auto failed = device_error(exception);
    world.heartbeat().report_failure(failed ? failed->describe() : exception.what());
    if (failed) throw *failed;
    throw;
  }
}

// Opens the folder of a run that its launcher restarted: the previous attempt made it, if it got so
// far; on a machine that has rank 0 for the first time the folder may be new.
void open_folder_again(const RunFolder& folder, RunConfig& config, const std::string& job) {
  std::string before = folder.job_id();
  if (fs::exists(folder.config()) && before != job) {
    ConfigError error("{}: holds another run than the one that starts again",
                      folder.path().string());
    error.set_cause(before.empty() ? "it does not say which job wrote it"
                                   : fmt::format("job {} wrote it, this is {}", before, job));
    error.set_advice("launch anew, with --resume to go on with it or another run.folder");
    throw error;
  }
  folder.complete(config.to_toml(), version_text());
}

// Makes the run folder, or opens that of a run to resume, and keeps others out of it.
std::unique_ptr<RunLock> open_folder(const RunFolder& folder, RunConfig& config,
                                     const TrainArguments& arguments,
                                     const LaunchEnvironment& environment) {
  const bool goes_on = environment.attempt > 0 || !arguments.resume.empty();
  // Another machine may have what this one has not; they ask each other (Trainer).
  if (environment.size == 1 && needs_run(arguments, environment) && !fs::exists(folder.config())) {
    throw folder.nothing_to_resume();
  }
  std::unique_ptr<RunLock> lock;
  if (goes_on) {
    folder.make();
    lock = std::make_unique<RunLock>(folder, environment, kPatience);
  }
  if (environment.attempt > 0) {
    open_folder_again(folder, config, environment.run_id);
  } else if (goes_on && fs::exists(folder.config())) {
    // A run that `lockstep average` wrote has no logs yet.
    folder.complete(config.to_toml(), version_text());
  } else {
    folder.create(config.to_toml(), version_text());
  }
  if (!lock) lock = std::make_unique<RunLock>(folder, environment, std::chrono::seconds(0));
  if (!environment.run_id.empty()) folder.set_job_id(environment.run_id);
  return lock;
}

// Opens the folder as rank 0. A lone rank that finds a run there may be one of several that each
// take themselves for the only one, because no variable tells their number: their mpirun belongs to
// another MPI.
std::unique_ptr<RunLock> open_new_folder(const RunFolder& folder, RunConfig& config,
                                         const TrainArguments& arguments,
                                         const LaunchEnvironment& environment) {
  try {
    return open_folder(folder, config, arguments, environment);
  } catch (ConfigError& error) {
    const bool unknown = environment.launcher == "none";
    std::string sign = unknown ? sign_of_lone_rank(environment_variable) : "";
    if (!sign.empty()) {
      error.set_cause(
          fmt::format("if several ranks were started: each takes itself for the only one, because "
                      "nothing says their number ({} is set, by which launcher?)",
                      sign));
    }
    throw;
  }
}

}  // namespace

std::optional<RunConfig> config_of_train(const Arguments& arguments) {
  TrainArguments parsed;
  if (!parse_train(arguments, parsed)) return std::nullopt;
  constexpr int kUnknownRanks = std::numeric_limits<int>::max();
  check_train_arguments(parsed, kUnknownRanks);
  RunConfig config = read_train_config(parsed);
  if (parsed.benchmark() || parsed.dry_run) config.run.folder.clear();
  return config;
}

std::string file_of_train(const Arguments& arguments) {
  TrainArguments parsed;
  std::vector<std::string> settings;
  return parse_train(arguments, parsed) ? take_config_file(parsed, settings) : "";
}

int train(const Arguments& arguments) {
  TrainArguments parsed;
  if (!parse_train(arguments, parsed)) return kExitOk;
  LaunchEnvironment environment = detect_launch_environment();
  RunConfig config;
  try {
    check_train_arguments(parsed, environment.size);
    config = read_train_config(parsed);
  } catch (const ConfigError&) {
    if (environment.local_rank == 0) throw;
    return kExitConfig;  // the host's first rank reports it
  }
  if (parsed.dry_run) {
    if (auto keys = config.task->step_size_keys(); keys && keys->per_rank->is_on()) {
      const bool found = config.training.fit_memory;  // of accumulate
      keys->per_rank->settle(environment.size, found ? 1 : config.task->accumulate());
    }
    if (environment.rank == 0) fmt::print("{}", config.to_toml());
    return kExitOk;
  }
  prepare_process(environment);
  OpenRun run;  // until this process ends
  SecondHome& home = run.home;
  if (parsed.benchmark()) return run_training(config, environment, parsed, run);
  RunFolder folder(config.run.folder);
  const ResumeWish wish{.address = parsed.resume_from,
                        .resumes = environment.attempt > 0 || !parsed.resume.empty()};
  home.expect(config.checkpoint, wish);
  if (environment.rank == 0) {
    home.check(folder, wish, environment);
    run.found = fs::exists(folder.config());
    run.lock = open_new_folder(folder, config, parsed, environment);
    home.open(config.checkpoint, folder);
  }
  try {
    const int code = run_training(config, environment, parsed, run);
    home.finish(folder, code != kExitOk);
    if (leaves_a_thread) {
      std::fflush(nullptr);
      ::_exit(code);
    }
    return code;
  } catch (const Error& error) {
    write_error(folder, environment.rank, error);
    throw;
  }
}

}  // namespace lockstep

// Times the trainer's own train_step of a task with made-up batches, and prints one JSON line as
// the PyTorch peers of benchmarks/peers do. Ranks come from the environment, as for lockstep train.
//
// What all these programs take: [--precision bf16|fp32] [--threads N] [--steps N] [--warmup N]
// [--profile] [--calibrate] [--tag TEXT] [key=value ...], the last being settings of a run
// (comm.hook=bf16, run.fused=false).
#pragma once

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <torch/types.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "arrays/cpu_allocator.h"
#include "base/error.h"
#include "step_timing.h"
#include "train/loop/train_step.h"

namespace lockstep {

struct StepRun {
  std::string workload, precision = "bf16", tag;
  int threads = 1, steps = 8, warmup = 4;
  bool profile = false, calibrate = false;
  std::vector<std::string> settings;  // key=value
};

inline void add_step_options(CLI::App& app, StepRun& run) {
  app.add_option("--precision", run.precision)->check(CLI::IsMember({"bf16", "fp32"}));
  app.add_option("--threads", run.threads);
  app.add_option("--steps", run.steps);
  app.add_option("--warmup", run.warmup);
  app.add_flag("--profile", run.profile, "print the time of each operation");
  app.add_flag("--calibrate", run.calibrate,
               "time a product of libtorch before every step: calibration_s");
  app.add_option("--tag", run.tag);
  app.add_option("settings", run.settings);
}

// `recipe`: the settings of the peer, TOML; those of the command line override it.
inline RunConfig step_config(const StepRun& run, const std::string& recipe) {
  ConfigSource source = ConfigSource::from_text(recipe, run.workload);
  for (const std::string& word : run.settings) source.override_with(word);
  source.set("run.precision", run.precision, "--precision");
  return read_run_config(std::move(source));
}

// Times one product of libtorch, [2048, 768] x [768, 3072] in the precision of the run: a measure
// of how fast the machine is while the steps are timed (benchmarks/step_budget).
class Calibration {
 public:
  explicit Calibration(const StepRun& run)
      : x_(torch::randn({2048, 768}).to(type_of(run))),
        y_(torch::randn({768, 3072}).to(type_of(run))) {}
  double seconds() const {
    const auto start = std::chrono::steady_clock::now();
    at::mm(x_, y_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  static at::ScalarType type_of(const StepRun& run) {
    return run.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  }
  torch::Tensor x_, y_;
};

// Task: batch(step, world) -> StepBatch besides what train_step asks for; made by make(numerics).
template <class Make>
void time_steps(const StepRun& run, RunConfig config, const Make& make) {
  use_caching_allocator();
  at::set_num_threads(run.threads);
  WorldOptions world_options;
  world_options.shared_memory = config.comm.shared_memory;
  World world(detect_launch_environment(), world_options);
  auto task = make(choose_numerics(config.run));
  TrainingState state(config, *task, world, choose_numerics(config.run));
  state.total_steps = run.warmup + run.steps;

  std::vector<double> times, waits, products;
  std::optional<Calibration> calibration;
  if (run.calibrate) calibration.emplace(run);
  int64_t misses = 0;
  double first_step = 0, total = 0, items = 0, tokens = 0;
  for (int i = 0; i < run.warmup + run.steps; ++i) {
    StepBatch batch = task->batch(i, world);
    if (calibration) products.push_back(calibration->seconds());
    world.barrier();
    auto start = std::chrono::steady_clock::now();
    const StepRecord record =
        train_step(state, {.next_batch = [&] { return std::move(batch); }}).record;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (run.profile && i + 1 == run.warmup) Profile::start();
    if (i == 0) first_step = wall_clock() - process_start();
    if (i + 1 == run.warmup) misses = allocator_statistics().misses;
    if (i < run.warmup) continue;
    times.push_back(took.count());
    waits.push_back(record.wait_seconds);
    total += took.count();
    items += static_cast<double>(record.items);
    const bool of_targets = std::string_view(task->unit()) == "tok";
    tokens += static_cast<double>(of_targets ? record.targets : record.sources);
  }
  if (run.profile && world.is_leader()) Profile::print(run.steps);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (!world.is_leader()) return;
  nlohmann::ordered_json out{{"workload", run.workload},
                             {"peer", "lockstep"},
                             {"precision", run.precision},
                             {"world", world.size()},
                             {"threads", run.threads},
                             {"steps", run.steps},
                             {"median_step_s", quantile(times, 0.5)},
                             {"min_step_s", quantile(times, 0)},
                             {"p90", quantile(times, 0.9)},
                             {"samples_per_s", items / total}};
  if (calibration) {
    products.erase(products.begin(), products.begin() + run.warmup);
    out["calibration_s"] = quantile(products, 0.5);
  }
  if (tokens > 0) out["tokens_per_s"] = tokens / total;
  out.update({{"median_wait_s", quantile(waits, 0.5)},
              {"new_blocks", allocator_statistics().misses - misses},
              {"peak_rss_mb", usage.ru_maxrss / 1024},
              {"process_to_first_step_s", first_step},
              {"tag", run.tag}});
  fmt::print("{}\n", out.dump());
}

// Parses the command line and calls `body`; the exit code.
template <class Body>
int step_main(CLI::App& app, int argc, char** argv, const Body& body) {
  CLI11_PARSE(app, argc, argv);
  try {
    body();
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), error.describe());
    return error.exit_code();
  }
  return 0;
}

}  // namespace lockstep

#include "train/run_config.h"

#include "dist/comm_hooks.h"
#include "optim/catalogue.h"
#include "tasks/catalogue.h"

namespace lockstep {

namespace {

// [task] and [optimizer] start with the name that chooses the rest.
struct NamedTask {
  RunConfig& config;
  void describe(Fields& f) {
    f("name", &config.task_name, OneOf{tasks().names()}, "what is trained");
  }
};

struct NamedOptimizer {
  RunConfig& config;
  void describe(Fields& f) {
    f("name", &config.optimizer_name, OneOf{optimizers().names()}, "how the weights move");
    config.optimizer->describe(f);
  }
};

// The name at `key` if the catalogue has it, else the fallback with the catalogue's error noted.
template <typename Entry>
std::string checked_name(ConfigSource& source, const std::string& key, const std::string& fallback,
                         const Catalogue<Entry>& catalogue) {
  std::string name = source.name_at(key, fallback);
  if (catalogue.find(name) != nullptr) return name;
  source.add_error(key, catalogue.unknown(name));
  source.set(key, fallback, "default");
  return fallback;
}

}  // namespace

void RunSection::describe(Fields& f) {
  f("folder", &folder, Any{}, "where the run is kept; must not hold a run yet");
  f("seed", &seed, AtLeast{0}, "of initial weights, data order and dropout");
  f("device", &device, OneOf{{"auto", "cpu", "cuda"}}, "auto: a GPU for each rank if there is one");
  f("precision", &precision, OneOf{{"fp32", "bf16"}}, "bf16: activations and matrix products");
  f("fused", &fused, Any{}, "lockstep's own kernels; false: plain libtorch, to compare");
  f("plain_operations", &plain_operations,
    OneOf{{kFusedOperationNames.begin(), kFusedOperationNames.end()}},
    "single operations that run as plain libtorch, to compare");
}

void TrainingSection::describe(Fields& f) {
  f("steps", &steps, AtLeast{1}, "optimizer steps of the whole run");
  f("minutes", &minutes, AtLeast{0}, "stop after this time even if steps are left; 0: no limit");
  f("clip_norm", &clip_norm, AtLeast{0}, "largest norm of the mean gradient; 0: no clipping");
  f("average_decay", &average_decay, Between{0, 1},
    "of the moving average of the weights that is evaluated and saved; 0: none");
  f("shard_optimizer", &shard_optimizer, Any{},
    "each rank updates a share of the weights and keeps the optimizer's arrays of that share only");
  f("check_weights_every", &check_weights_every, AtLeast{0},
    "steps between checks that all ranks hold equal weights; 0: at the start only");
  f("progress_every", &progress_every, AtLeast{1}, "steps between progress lines");
}

void EvaluationSection::describe(Fields& f) {
  f("every", &every, AtLeast{0}, "steps between evaluations; 0: at the end only");
  f("split", &split, Any{}, "which split of the corpus");
  f("limit", &limit, AtLeast{0}, "items of the split that are decoded; 0: all");
}

void CheckpointSection::describe(Fields& f) {
  f("every", &every, AtLeast{0}, "steps between checkpoints; 0: at the end only");
  f("keep", &keep, AtLeast{1}, "newest checkpoints kept; the best one is kept besides");
}

void CommSection::describe(Fields& f) {
  f("hook", &hook, OneOf{comm_hooks().names()}, "what is done to gradients on the wire");
  f("bucket_megabytes", &bucket_megabytes, Above{0}, "gradients exchanged at a time");
  f("timeout_seconds", &timeout_seconds, AtLeast{1}, "how long to wait for another rank");
  f("shared_memory", &shared_memory, Any{},
    "ranks of one machine exchange through shared memory instead of the network");
}

void RunConfig::describe(Fields& f) {
  f.section("run", run, "the run");
  NamedTask named_task{*this};
  f.section("task", named_task, "what is trained");
  task->describe(f);
  NamedOptimizer named_optimizer{*this};
  f.section("optimizer", named_optimizer, "how the weights move");
  f.section("schedule", schedule, "the learning rate over time");
  f.section("training", training, "the loop");
  f.section("evaluation", evaluation, "measuring during training");
  f.section("checkpoint", checkpoint, "saving during training");
  f.section("comm", comm, "between ranks");
}

std::string RunConfig::to_toml() {
  TomlWriter writer;
  describe(writer);
  return writer.text();
}

RunConfig read_run_config(ConfigSource source) {
  RunConfig config;
  std::string task = checked_name(source, "task.name", config.task_name, tasks());
  std::string optimizer =
      checked_name(source, "optimizer.name", config.optimizer_name, optimizers());
  config.task = tasks().get(task)();
  config.optimizer = optimizers().get(optimizer)();
  source.read("", config);
  source.finish();
  return config;
}

RunConfig read_run_config(const fs::path& path, const std::vector<std::string>& words) {
  ConfigSource source = ConfigSource::from_file(path);
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

torch::Device choose_device(const std::string& name, int local_rank, int local_size) {
  if (name == "cpu") return torch::kCPU;
  auto gpus = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  if (gpus >= local_size) return torch::Device(torch::kCUDA, static_cast<int8_t>(local_rank));
  if (name == "auto" && gpus == 0) return torch::kCPU;
  throw MachineError(
      "run.device = {}: {} rank{} on this host but {} usable GPU{}; start one rank a GPU, or use "
      "run.device=cpu",
      name, local_size, local_size == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s");
}

Numerics choose_numerics(const RunSection& run) {
  Numerics numerics{.compute = run.precision == "bf16" ? at::kBFloat16 : at::kFloat,
                    .fused = run.fused};
  for (const std::string& name : run.plain_operations) {
    auto found = std::find(kFusedOperationNames.begin(), kFusedOperationNames.end(), name);
    numerics.plain |= 1u << (found - kFusedOperationNames.begin());
  }
  return numerics;
}

}  // namespace lockstep

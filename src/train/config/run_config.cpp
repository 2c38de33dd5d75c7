#include "train/config/run_config.h"

#include <ATen/Context.h>

#include "base/error.h"
#include "base/text.h"
#include "dist/collectives/cuda.h"
#include "dist/gradients/comm_hooks.h"
#include "optim/optimizers/catalogue.h"
#include "tasks/catalogue.h"
#include "train/config/run_config_checks.h"

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

// Returns the name at `key` if the catalogue has it; else notes the catalogue's error and returns
// the fallback.
template <typename Entry>
std::string checked_name(ConfigSource& source, const std::string& key, const std::string& fallback,
                         const Catalogue<Entry>& catalogue) {
  std::string name = source.name_at(key, fallback);
  if (catalogue.find(name) != nullptr) return name;
  source.add_error(key, catalogue.unknown(name));
  source.set(key, fallback, "default");
  return fallback;
}

void check_optimization(RunConfig& config, ConfigSource& source) {
  if (config.larc.is_on() && !source.has("training.clip_norm")) config.training.clip_norm = 0;
  if (config.larc.is_on() && config.training.clip_norm > 0) {
    source.add_error("larc.mode",
                     fmt::format("\"{}\" excludes training.clip_norm ({}): both would scale the "
                                 "gradients; set training.clip_norm=0",
                                 config.larc.mode, config.training.clip_norm));
  }
  const std::string schedule = config.schedule.check();
  if (!schedule.empty()) source.add_error("schedule.values", schedule);
  if (schedule_momentum(1, config.schedule, {}) && !config.optimizer->has_momentum()) {
    source.add_error("schedule.cycle_momentum",
                     fmt::format("one_cycle moves the momentum, but {} has none: set "
                                 "optimizer.momentum above 0, or schedule.cycle_momentum=false",
                                 config.optimizer_name));
  }
}

}  // namespace

void RunSection::describe(Fields& f) {
  f("folder", &folder, Any{}, "where the run is kept; must not hold a run yet");
  f("seed", &seed, AtLeast{0}, "of initial weights, data order and dropout");
  f("device", &device, OneOf{{"auto", "cpu", "cuda"}}, "auto: a GPU for each rank if there is one");
  f("precision", &precision, OneOf{{"auto", "fp32", "bf16", "fp16"}},
    "of activations and matrix products; weights, sums, norms, softmax and loss are fp32 always; "
    "auto: bf16 where the hardware of all ranks computes it, else fp16 on GPUs, else fp32");
  f("fused", &fused, Any{}, "lockstep's own kernels; false: plain libtorch, to compare");
  f("plain_operations", &plain_operations,
    OneOf{{kFusedOperationNames.begin(), kFusedOperationNames.end()}},
    "single operations that run as plain libtorch, to compare");
  f("load_model", &load_model, InputPath{},
    "a run, checkpoint or tensor file whose weights of the same names and shapes a new run begins "
    "with");
  f("plan", &plan, InputPath{},
    "what `lockstep plan` wrote, to compare at the end; empty: plan.json of the run folder, if "
    "any");
}

void TrainingSection::describe(Fields& f) {
  f("steps", &steps, AtLeast{0}, "optimizer steps of the whole run; 0: epochs says when it ends");
  f("epochs", &epochs, AtLeast{0}, "passes over the corpus of the whole run; 0: steps says it");
  f("minutes", &minutes, AtLeast{0}, "stop after this time even if steps are left; 0: no limit");
  f("clip_norm", &clip_norm, AtLeast{0}, "largest norm of the mean gradient; 0: no clipping");
  f("gradient_mean", &gradient_mean, OneOf{{"targets", "ranks"}},
    "over all targets of the step; or, as Horovod, the mean of the ranks' means over their own");
  f("average_decay", &average_decay, Between{0, 1},
    "of the moving average of the weights that is evaluated and saved; 0: none");
  f("freeze", &freeze, Any{},
    "regular expressions: weights that match one by their whole name keep their values");
  f("decay_vectors", &decay_vectors, Any{},
    "optimizer.weight_decay counts for weights of one dimension as well: biases and norms");
  f("no_decay", &no_decay, Any{},
    "regular expressions: weights that match one by their whole name are without weight decay");
  f("shard_optimizer", &shard_optimizer, Any{},
    "each rank updates a share of the weights and keeps the optimizer's arrays of that share only");
  f("fit_memory", &fit_memory, Any{},
    "micro-batches as large as fit: batch.accumulate is found by trial steps; a step stays as it "
    "is");
  f("fit_megabytes", &fit_megabytes, AtLeast{0},
    "what the tensors of a rank may take then; 0: most of what its machine has free");
  divergence.describe(f);
  f("check_weights_every", &check_weights_every, AtLeast{0},
    "steps between checks that all ranks hold equal weights, averages and optimizers, made before "
    "checkpoints too; 0: at the start only");
  f("progress_every", &progress_every, AtLeast{1}, "steps between progress lines");
  f("reproducible", &reproducible, OneOf{{"same-ranks", "any-ranks"}},
    "any-ranks: 1, 2, 4, ... ranks, up to virtual_shards, of as many threads each, take steps of "
    "the same bits");
  f("virtual_shards", &virtual_shards, AtLeast{1},
    "parts of a step with any-ranks, a power of two: the micro-batches of one rank");
}

void EvaluationSection::describe(Fields& f) {
  f("every", &every, AtLeast{0}, "steps between evaluations, and one at the end; 0: none at all");
  f("every_epochs", &every_epochs, AtLeast{0},
    "epochs between evaluations, and one at the end, in place of every; 0: by steps");
  f("split", &split, Any{}, "which split of the corpus");
  f("limit", &limit, AtLeast{0}, "items of the split that are decoded; 0: all");
  f("metrics", &metrics, OneOf{known_metrics},
    "of each the best checkpoints are kept; the first says which one is used");
  f("samples", &samples, AtLeast{0}, "items shown after each evaluation");
  f("patience", &patience, AtLeast{0},
    "evaluations without improvement that end the run; 0: none does");
  f("patience_metrics", &patience_metrics, OneOf{{"first", "any", "all"}},
    "which of the metrics must have stalled for so long");
  f("min_improvement", &min_improvement, AtLeast{0},
    "a metric that beats its best by no more has stalled");
}

void CheckpointSection::describe(Fields& f) {
  f("every", &every, AtLeast{0}, "steps between checkpoints; 0: at the end only");
  f("keep", &keep, AtLeast{1}, "newest checkpoints kept; the best ones are kept besides");
  f("keep_best", &keep_best, AtLeast{1}, "best checkpoints kept of each of evaluation.metrics");
  f("background", &background, Any{},
    "training stands still only while its state is copied, which takes as much memory as the "
    "checkpoint has bytes; false, and with training.fit_memory on a CPU: until it is written");
  f("every_machine", &every_machine, OneOf{{"auto", "no"}},
    "auto: machines that do not see rank 0's run folder keep one of their own, with all "
    "checkpoints");
  f("mirror", &mirror, Any{},
    "a second home, to which checkpoints and the run's files are copied beside the training: "
    "s3://BUCKET/PREFIX, ssh://[USER@]HOST[:PORT]/FOLDER, file:///FOLDER or a folder; empty: none");
  f("mirror_keep", &mirror_keep, AtLeast{1},
    "newest checkpoints kept there; the best ones are kept besides");
  f("mirror_wait_seconds", &mirror_wait_seconds, AtLeast{0},
    "how long the run's end waits for the last checkpoint to be there");
}

void LoggingSection::describe(Fields& f) {
  f("style", &style, OneOf{{"auto", "lockstep", "imagenet"}},
    "of the console's lines; imagenet: as PyTorch's ImageNet example, with its tags in TensorBoard "
    "beside lockstep's; auto: imagenet for images, else lockstep");
  f("pictures", &pictures, Any{},
    "of classes: samples of images and what was taken for what, as pictures in TensorBoard");
  f("histograms_every", &histograms_every, AtLeast{0},
    "steps between histograms of weights and gradients in TensorBoard; 0: none");
  f("mlperf", &mlperf, Any{}, "an MLPerf log, mlperf_N.log, in the run folder");
}

void MlperfSection::describe(Fields& f) {
  f("submission_org", &submission_org, Any{}, "who runs it");
  f("submission_platform", &submission_platform, Any{},
    "on what; auto: ranks, devices and machines");
  f("submission_division", &submission_division, OneOf{{"open", "closed"}},
    "open: any model and hyper-parameters");
  f("submission_status", &submission_status, OneOf{{"research", "preview", "cloud", "onprem"}},
    "of the machines");
  f("submission_benchmark", &submission_benchmark, Any{},
    "MLPerf's name of the benchmark; auto: resnet, bert or transformer, by the task");
  f("target", &target, AtLeast{0},
    "of the first of evaluation.metrics, in its unit: run_stop is when it is reached; 0: at the "
    "end");
  f("clear_cache", &clear_cache, Any{},
    "drop the system's file caches on every host before the data are read; needs root");
}

void MonitorSection::describe(Fields& f) {
  f("every_seconds", &every_seconds, AtLeast{0},
    "between two lines of each host in metrics.jsonl and TensorBoard: use of cores, GPUs, memory, "
    "network, disks, power; 0: none");
}

void CommSection::describe(Fields& f) {
  hooks.describe(f);
  f("bucket_megabytes", &bucket_megabytes, Above{0}, "gradients exchanged at a time");
  f("timeout_seconds", &timeout_seconds, AtLeast{1}, "how long to wait for another rank");
  f("lost_seconds", &lost_seconds, AtLeast{0},
    "a rank that gives no sign of life for so long is lost, and the run ends; 0: silence alone "
    "never ends it");
  f("stall_seconds", &stall_seconds, AtLeast{0},
    "a rank that lives but lets the others wait for so long is named in the log; 0: never");
  f("shared_memory", &shared_memory, Any{},
    "ranks of one machine exchange through shared memory instead of the network");
  f("streams", &streams, AtLeast{1},
    "TCP connections between two machines; long ways are filled by several");
  f("gpu_exchange", &gpu_exchange, OneOf{{"nccl", "host"}},
    "host: the exchange of CPUs, on copies of what is on the GPU, so that ranks can share a GPU");
  local.describe(f);
  f.section("powersgd", hooks.powersgd, "the hook powersgd");  // last: it is a table of its own
}

void RunConfig::describe(Fields& f) {
  f.section("run", run, "the run");
  NamedTask named_task{*this};
  f.section("task", named_task, "what is trained");
  task->describe(f);
  NamedOptimizer named_optimizer{*this};
  f.section("optimizer", named_optimizer, "how the weights move");
  f.section("schedule", schedule, "the learning rate over time");
  f.section("larc", larc, "learning rates by layer");
  f.section("loss_scale", loss_scale, "for run.precision = \"fp16\"");
  f.section("training", training, "the loop");
  f.section("guard", guard, "steps that would spoil the weights");
  f.section("evaluation", evaluation, "measuring during training");
  f.section("checkpoint", checkpoint, "saving during training");
  f.section("logging", logging, "what the console and TensorBoard show");
  f.section("monitor", monitor, "figures of the hosts");
  f.section("mlperf", mlperf, "what logging.mlperf says of the run");
  f.section("comm", comm, "between ranks");
  f.section("trace", trace, "steps whose timeline is recorded");
}

std::string RunConfig::to_toml() {
  TomlWriter writer;
  describe(writer);
  return writer.text();
}

std::string RunConfig::log_style() const {
  return logging.style == "auto" ? task->log_style() : logging.style;
}

ValidationRules RunConfig::validation_rules() const {
  return {.keep_best = checkpoint.keep_best,
          .min_improvement = evaluation.min_improvement,
          .patience = evaluation.patience,
          .stalled = evaluation.patience_metrics};
}

RunConfig read_run_config(ConfigSource source) {
  RunConfig config;
  std::string task = checked_name(source, "task.name", config.task_name, tasks());
  std::string optimizer =
      checked_name(source, "optimizer.name", config.optimizer_name, optimizers());
  config.task = tasks().get(task)();
  config.optimizer = optimizers().get(optimizer)();
  for (const MetricKind& kind : config.task->metrics()) {
    config.evaluation.known_metrics.push_back(kind.name);
  }
  config.evaluation.metrics = {config.evaluation.known_metrics.front()};
  config.evaluation.split = config.task->tuning_split();
  config.evaluation.samples = config.task->shown_samples();
  source.read("", config);
  check_run_config(config, source);
  source.finish();
  return config;
}

RunConfig read_run_config(const fs::path& path, const std::vector<std::string>& words) {
  ConfigSource source = ConfigSource::from_file(path);
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

torch::Device choose_device(const RunConfig& config, int local_rank, int local_size) {
  const std::string& name = config.run.device;
  if (name == "cpu") return torch::kCPU;
  const int gpus = usable_gpus();
  if (gpus >= local_size || (gpus > 0 && config.comm.shares_gpus())) {
    // cuDNN's attention makes a plan for each shape, and a decoder's grow with every token.
    at::globalContext().setSDPUseCuDNN(false);
    return torch::Device(gpu_type(), static_cast<int8_t>(local_rank % gpus));
  }
  if (name == "auto" && gpus == 0) return torch::kCPU;
  MachineError error("run.device = {}: {} rank{} on this host but {} usable GPU{}", name,
                     local_size, local_size == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s");
  if (gpus == 0) error.set_cause(why_no_gpu());
  error.set_advice(gpus == 0 ? "run.device=cpu"
                             : "a rank a GPU, as lockstep launch -n auto starts them, "
                               "comm.gpu_exchange=host, or run.device=cpu");
  throw error;
}

Numerics choose_numerics(const RunSection& run) {
  TORCH_CHECK(run.precision != "auto", "the precision is not settled");
  Numerics numerics{.fused = run.fused};
  if (run.precision == "bf16") numerics.compute = at::kBFloat16;
  if (run.precision == "fp16") numerics.compute = at::kHalf;
  for (const std::string& name : run.plain_operations) {
    auto found = std::find(kFusedOperationNames.begin(), kFusedOperationNames.end(), name);
    numerics.plain |= 1u << (found - kFusedOperationNames.begin());
  }
  return numerics;
}

}  // namespace lockstep

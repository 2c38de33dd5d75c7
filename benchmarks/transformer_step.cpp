// The training step of a Transformer for translation on given sentence lengths: forward, loss,
// backward, exchange between ranks, optimizer - the trainer's own train_step. Prints one JSON line,
// like the PyTorch peers that benchmarks/compare runs beside it.
//
//   transformer_step --lengths FILE [--size base|small] [--precision bf16|fp32] [--threads N]
//       [--steps N] [--warmup N] [--profile] [key=value ...]
//
// FILE: one batch a line, "source target" lengths of each sentence pair; rank r of n takes lines r,
// r + n, ... (benchmarks/peer_lengths writes those of the peer). key=value: settings of a run
// (comm.hook=bf16, run.fused=false). Ranks come from the environment, as for lockstep train.
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "kernels/cpu_allocator.h"
#include "models/transformer.h"
#include "nn/cross_entropy.h"
#include "step_timing.h"
#include "train/train_step.h"

namespace lockstep {
namespace {

struct Options {
  std::string lengths, size = "base", precision = "bf16", tag;
  int threads = 1, steps = 8, warmup = 4;
  bool profile = false;
  std::vector<std::string> settings;
};

struct Shape {
  int64_t width, layers, heads, inner, vocabulary;
};

struct Lengths {
  std::vector<int32_t> source, target;
};

std::vector<Lengths> read_lengths(const std::string& path, const World& world, int count) {
  std::ifstream file(path);
  if (!file) throw DataError("{}: cannot be read", path);
  std::vector<Lengths> out;
  int line_number = 0;
  for (std::string line; static_cast<int>(out.size()) < count && std::getline(file, line);) {
    if (line_number++ % world.size() != world.rank()) continue;
    std::istringstream words(line);
    Lengths batch;
    for (int32_t s, t; words >> s >> t;) {
      batch.source.push_back(s);
      batch.target.push_back(t);
    }
    out.push_back(batch);
  }
  if (static_cast<int>(out.size()) < count) throw DataError("{}: too few batches", path);
  return out;
}

struct StepBatchOfLengths : Batch {
  TranslationInput input;
  torch::Tensor targets_out;
};

PackedSentences make_side(const std::vector<int32_t>& lengths, int64_t vocabulary, uint64_t key) {
  std::vector<std::vector<int32_t>> sentences;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    sentences.emplace_back();
    for (int32_t i = 0; i < lengths[s]; ++i) {
      const uint64_t bits = mix64(combine_keys(key + s, static_cast<uint64_t>(i)));
      sentences.back().push_back(static_cast<int32_t>(4 + bits % (vocabulary - 4)));
    }
  }
  PackedSentences side = pack_sentences(sentences, torch::kCPU);
  side.rows = torch::empty({side.tokens.numel()}, torch::kInt64);
  for (int64_t i = 0; i < side.rows.numel(); ++i) {
    side.rows.mutable_data_ptr<int64_t>()[i] =
        static_cast<int64_t>(combine_keys(key, static_cast<uint64_t>(i)));
  }
  return side;
}

// The task of the trainer with made-up tokens: network and loss are the real ones.
class StepTask : public StepOnlyTask {
 public:
  StepTask(const Shape& shape, const Numerics& numerics) : StepOnlyTask(numerics), shape_(shape) {
    TransformerConfig config;
    config.d_model = shape.width;
    config.heads = shape.heads;
    config.encoder_layers = config.decoder_layers = shape.layers;
    config.feed_forward = shape.inner;
    config.dropout = config.attention_dropout = config.relu_dropout = 0.1;
    model_ = std::make_unique<Transformer>(config, shape.vocabulary, parameters_);
    parameters_.allocate(torch::kCPU, numerics.compute, 1);
  }
  StepBatch batch(const Lengths& lengths, uint64_t key, World& world) const {
    auto made = std::make_unique<StepBatchOfLengths>();
    made->input.source = make_side(lengths.source, shape_.vocabulary, key);
    made->input.target = make_side(lengths.target, shape_.vocabulary, key + (1u << 20));
    made->targets_out = made->input.target.tokens.roll(-1);
    made->items = static_cast<int64_t>(lengths.target.size());
    made->targets = made->targets_out.numel();
    made->sources = made->input.source.tokens.numel();
    std::array<double, 1> targets{static_cast<double>(made->targets)};
    world.all_reduce_sum(std::span<double>(targets));
    StepBatch out;
    out.targets = static_cast<int64_t>(targets[0]);
    out.micro_batches.push_back(std::move(made));
    return out;
  }
  LossParts loss(const Batch& batch, int64_t step) override {
    const auto& b = static_cast<const StepBatchOfLengths&>(batch);
    ForwardContext context{.training = true, .numerics = numerics_, .seed = 1, .step = step};
    CrossEntropyResult r = smoothed_cross_entropy(model_->forward(b.input, context),
                                                  *parameters_.find("embedding.weight"),
                                                  b.targets_out, 0.1, numerics_);
    return {r.loss, r.nll, r.correct};
  }
  int64_t width() const override { return shape_.width; }
  const char* unit() const override { return "tok"; }

 private:
  Shape shape_;
  std::unique_ptr<Transformer> model_;
};

void run(const Options& options) {
  use_caching_allocator();
  at::set_num_threads(options.threads);
  ConfigSource source = ConfigSource::from_text("", "command line");
  for (const std::string& word : options.settings) source.override_with(word);
  source.set("run.precision", options.precision, "--precision");
  RunConfig config = read_run_config(std::move(source));
  WorldOptions world_options;
  world_options.shared_memory = config.comm.shared_memory;
  World world(detect_launch_environment(), world_options);
  std::vector<Lengths> lengths =
      read_lengths(options.lengths, world, options.warmup + options.steps);
  Shape shape =
      options.size == "small" ? Shape{256, 3, 4, 1024, 8000} : Shape{512, 6, 8, 2048, 32000};
  StepTask task(shape, choose_numerics(config.run));
  Parameters& parameters = task.parameters();
  WeightUpdate update(world, parameters, *config.optimizer,
                      {.sharded = config.training.shard_optimizer});
  auto hook = make_comm_hook(world, config.comm.hooks);
  std::vector<ReducedParameter> reduced;
  for (const ParameterRef& p : parameters.list())
    reduced.push_back({p->value, p->offset, p->numel});
  GradientReducer reducer(world, *hook, std::move(reduced), parameters.gradients(), {});
  FrozenWeights frozen;
  RunningStatistics statistics(world, parameters, /*average=*/false);
  StepGuard guard(choose_numerics(config.run), config.loss_scale, config.training.divergence);
  LocalSteps local({world, parameters, frozen, {}}, {}, {}, int64_t{4} << 20);  // of every step
  int64_t steps_in_all = options.warmup + options.steps;
  Engine engine{task,  world, reducer,    update, frozen,
                guard, local, statistics, config, steps_in_all};

  std::vector<double> times, waits;
  int64_t misses = 0;
  double first_step = 0, tokens = 0, sentences = 0, total = 0;
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    StepBatch batch = task.batch(lengths[i], static_cast<uint64_t>(i) << 32, world);
    world.barrier();
    auto start = std::chrono::steady_clock::now();
    StepRecord record = train_step(engine, batch, i + 1, {}).record;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (options.profile && i + 1 == options.warmup) Profile::start();
    if (i == 0) first_step = wall_clock() - process_start();
    if (i + 1 == options.warmup) misses = allocator_statistics().misses;
    if (i < options.warmup) continue;
    times.push_back(took.count());
    waits.push_back(record.wait_seconds);
    total += took.count();
    tokens += static_cast<double>(record.targets);
    sentences += static_cast<double>(batch.micro_batches[0]->items);
  }
  if (options.profile && world.is_leader()) Profile::print(options.steps);
  std::array<double, 1> all_sentences{sentences};
  world.all_reduce_sum(std::span<double>(all_sentences));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (!world.is_leader()) return;
  nlohmann::ordered_json out{{"workload", "nmt-" + options.size},
                             {"peer", "lockstep"},
                             {"precision", options.precision},
                             {"world", world.size()},
                             {"threads", options.threads},
                             {"steps", options.steps},
                             {"median_step_s", quantile(times, 0.5)},
                             {"min_step_s", quantile(times, 0)},
                             {"p90", quantile(times, 0.9)},
                             {"samples_per_s", all_sentences[0] / total},
                             {"tokens_per_s", tokens / total},
                             {"median_wait_s", quantile(waits, 0.5)},
                             {"new_blocks", allocator_statistics().misses - misses},
                             {"peak_rss_mb", usage.ru_maxrss / 1024},
                             {"process_to_first_step_s", first_step},
                             {"tag", options.tag}};
  fmt::print("{}\n", out.dump());
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  CLI::App app("Times the training step of a Transformer");
  app.add_option("--lengths", options.lengths)->required();
  app.add_option("--size", options.size)->check(CLI::IsMember({"base", "small"}));
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"bf16", "fp32"}));
  app.add_option("--threads", options.threads);
  app.add_option("--steps", options.steps);
  app.add_option("--warmup", options.warmup);
  app.add_flag("--profile", options.profile, "print the time of each operation");
  app.add_option("--tag", options.tag);
  app.add_option("settings", options.settings);
  CLI11_PARSE(app, argc, argv);
  try {
    lockstep::run(options);
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "transformer_step: {}\n", error.what());
    return error.exit_code();
  }
  return 0;
}

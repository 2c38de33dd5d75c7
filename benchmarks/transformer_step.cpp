// The training step of a Transformer for translation on given sentence lengths: forward, loss,
// backward, exchange between ranks, optimizer - the trainer's own train_step. Prints one JSON line,
// like its PyTorch peer, benchmarks/peers/translation.py; benchmarks/peers/ratio compares the two.
//
//   transformer_step --lengths FILE [--size base|small]
//
// FILE: one batch a line, "source target" lengths of each sentence pair; rank r of n takes lines r,
// r + n, ... (benchmarks/peers/lengths.py writes such files). The other options: step_run.h.
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "models/transformer.h"
#include "nn/cross_entropy.h"
#include "step_run.h"

namespace lockstep {
namespace {

struct Options {
  StepRun run;
  std::string lengths, size = "base";
};

struct Shape {
  int64_t width, layers, heads, inner, vocabulary;
};

struct Lengths {
  std::vector<int32_t> source, target;
};

// Of every rank's batches, in the order of the file.
std::vector<Lengths> read_lengths(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw DataError("{}: cannot be read", path);
  std::vector<Lengths> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Lengths batch;
    for (int32_t s, t; words >> s >> t;) {
      batch.source.push_back(s);
      batch.target.push_back(t);
    }
    out.push_back(batch);
  }
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
  StepTask(const Options& options, const Numerics& numerics)
      : StepOnlyTask(numerics), path_(options.lengths), lengths_(read_lengths(path_)) {
    const Shape small{256, 3, 4, 1024, 8000}, base{512, 6, 8, 2048, 32000};
    const Shape& shape = shape_ = options.size == "small" ? small : base;
    TransformerConfig config;
    config.d_model = shape.width;
    config.heads = shape.heads;
    config.encoder_layers = config.decoder_layers = shape.layers;
    config.feed_forward = shape.inner;
    config.dropout = config.attention_dropout = config.relu_dropout = 0.1;
    model_ = std::make_unique<Transformer>(config, shape.vocabulary, parameters_);
    parameters_.allocate(torch::kCPU, numerics.compute, 1);
  }
  StepBatch batch(int64_t step, World& world) const {
    const auto line = static_cast<std::size_t>(step * world.size() + world.rank());
    if (line >= lengths_.size()) throw DataError("{}: too few batches", path_);
    const Lengths& lengths = lengths_[line];
    const uint64_t key = static_cast<uint64_t>(step) << 32;
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
  std::string path_;
  std::vector<Lengths> lengths_;
  Shape shape_;
  std::unique_ptr<Transformer> model_;
};

void run(const Options& options) {
  StepRun run = options.run;
  run.workload = "nmt-" + options.size;
  time_steps(run, step_config(run, ""), [&](const Numerics& numerics) {
    return std::make_unique<StepTask>(options, numerics);
  });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  CLI::App app("Times the training step of a Transformer", "transformer_step");
  app.add_option("--lengths", options.lengths)->required();
  app.add_option("--size", options.size)->check(CLI::IsMember({"base", "small"}));
  lockstep::add_step_options(app, options.run);
  return lockstep::step_main(app, argc, argv, [&] { lockstep::run(options); });
}

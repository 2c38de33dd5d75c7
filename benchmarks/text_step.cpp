// The training step of a BERT that classifies made-up texts: forward, loss, backward, exchange
// between ranks, optimizer - the trainer's own train_step. Prints one JSON line, like its PyTorch
// peer, benchmarks/peers/text.py; benchmarks/peers/ratio compares the two.
//
//   text_step [--size base|large|minilm] [--batch N] [--length TOKENS] [--lengths FILE]
//       [--dropout P]
//
// and the options of step_run.h. --lengths: a step a line, the lengths of its texts; in place of
// --batch and --length. With several ranks each takes the lines of its own number.
#include <sstream>

#include "base/random.h"
#include "models/bert.h"
#include "step_run.h"

namespace lockstep {
namespace {

struct Options {
  StepRun run;
  std::string size = "base", lengths;
  int64_t batch = 16, length = 128;
  double dropout = 0.1;
};

BertShape shape_of(const Options& options) {
  BertShape shape;
  if (options.size == "large") {
    shape.hidden_size = 1024;
    shape.num_hidden_layers = 24;
    shape.num_attention_heads = 16;
    shape.intermediate_size = 4096;
  } else if (options.size == "minilm") {
    shape.hidden_size = 384;
    shape.num_hidden_layers = 6;
    shape.intermediate_size = 1536;
  }
  shape.hidden_dropout_prob = shape.attention_probs_dropout_prob = options.dropout;
  return shape;
}

std::vector<std::vector<int32_t>> read_lengths(const Options& options) {
  if (options.lengths.empty()) {
    return {std::vector<int32_t>(static_cast<std::size_t>(options.batch),
                                 static_cast<int32_t>(options.length))};
  }
  std::vector<std::vector<int32_t>> out;
  for_each_line(options.lengths, [&](std::string_view line, int64_t) {
    std::istringstream numbers{std::string(line)};
    out.emplace_back();
    for (int32_t n; numbers >> n;) out.back().push_back(n);
  });
  return out;
}

struct TextBatch : Batch {
  PackedTexts texts;
  torch::Tensor labels;
};

// The task of the trainer with made-up texts: the network is the real one.
class StepTask : public StepOnlyTask {
 public:
  StepTask(const Options& options, const Numerics& numerics)
      : StepOnlyTask(numerics),
        lengths_(read_lengths(options)),
        model_(shape_of(options), parameters_) {
    parameters_.allocate(torch::kCPU, numerics.compute, 1);
  }
  StepBatch batch(int64_t step, World& world) const {
    auto made = std::make_unique<TextBatch>();
    const int64_t line = step * world.size() + world.rank();
    const auto& lengths = lengths_[static_cast<std::size_t>(line % std::ssize(lengths_))];
    const auto n = static_cast<int64_t>(lengths.size());
    int64_t tokens = 0;
    for (int32_t length : lengths) tokens += length;
    const at::Generator generator =
        at::detail::createCPUGenerator(combine_keys(static_cast<uint64_t>(step), world.rank()));
    const torch::Tensor ids = torch::randint(5, 30000, {tokens}, generator, torch::kInt64);
    made->texts = pack_texts(ids, torch::zeros_like(ids), lengths, torch::arange(n) + line * n);
    made->labels = torch::randint(0, 2, {n}, generator, torch::kInt64);
    made->items = made->targets = n;
    made->sources = tokens;
    StepBatch out;
    out.targets = n * world.size();
    out.micro_batches.push_back(std::move(made));
    return out;
  }
  LossParts loss(const Batch& batch, int64_t step) override {
    const auto& b = static_cast<const TextBatch&>(batch);
    const BertForward how{.numerics = numerics_, .training = true, .step = step};
    const torch::Tensor logits = model_.logits(b.texts, how).to(at::kFloat);
    torch::Tensor loss = at::cross_entropy_loss(logits, b.labels, {}, at::Reduction::Sum);
    return {loss, loss.detach(), logits.argmax(1).eq(b.labels).sum()};
  }
  const char* unit() const override { return "txt"; }

 private:
  std::vector<std::vector<int32_t>> lengths_;
  Bert model_;
};

// As the peer: AdamW with decay of matrices alone, clipping at 1.
void run(const Options& options) {
  StepRun run = options.run;
  run.workload = "bert-" + options.size + (options.lengths.empty() ? "" : "-lengths");
  RunConfig config = step_config(
      run,
      "[optimizer]\nname = \"adamw\"\nlr = 5e-5\nbeta2 = 0.999\nepsilon = 1e-8\n"
      "weight_decay = 0.01\n[schedule]\nname = \"constant\"\nwarmup_steps = 0\n[training]\n"
      "clip_norm = 1\ndecay_vectors = false\n");
  time_steps(run, std::move(config), [&](const Numerics& numerics) {
    return std::make_unique<StepTask>(options, numerics);
  });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  CLI::App app("Times the training step of a BERT", "text_step");
  app.add_option("--size", options.size)->check(CLI::IsMember({"base", "large", "minilm"}));
  app.add_option("--batch", options.batch);
  app.add_option("--length", options.length);
  app.add_option("--lengths", options.lengths);
  app.add_option("--dropout", options.dropout);
  lockstep::add_step_options(app, options.run);
  return lockstep::step_main(app, argc, argv, [&] { lockstep::run(options); });
}

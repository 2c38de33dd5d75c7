// Defines the task that only pretends to compute: it sleeps where others multiply. Weights and
// gradients of a chosen size, their exchange, the optimizer, checkpoints, evaluations and all else
// are real, so that many ranks can be tried on few cores (docs/scale.md).
//
// What it learns: weight i of layer l goes to a target of that layer, with a noise of each item on
// the way. Losses and gradients of items are rounded to few bits, so that their sums are exact: the
// digits of a run are the same for any number of ranks and however a step is shared among them, up
// to 4,096 items a step.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lockstep {

struct PretendModelConfig {  // section [model]
  int64_t parameters = 1'000'000;
  int64_t layers = 8;

  void describe(Fields& f);
};

struct PretendConfig {  // section [pretend]
  double step_milliseconds = 200;
  double backward_share = 0.667;  // a backward pass takes twice a forward pass
  double jitter = 0;
  std::vector<std::string> slow;
  double batch_milliseconds = 0;
  double evaluation_milliseconds = 100;
  int64_t train_items = 65536, evaluation_items = 256;

  void describe(Fields& f);
};

struct PretendBatchConfig {  // section [batch]
  int64_t items = 64;
  PerRankConfig per_rank;
  int64_t accumulate = 1;
  SharesConfig shares;

  void describe(Fields& f);
};

// Returns how many times as long as others `rank` takes, by entries such as "3:2.0"; 1 for ranks
// without one. Throws ConfigError for an entry of another form.
double pretended_slowness(const std::vector<std::string>& entries, int rank);

class Pretend : public Task {
 public:
  void describe(Fields& f) override;
  void open(const TaskContext& context) override;
  std::string data_identity() const override;
  Parameters& parameters() override { return parameters_; }
  int64_t accumulate() const override { return batch_.accumulate; }
  std::optional<StepSizeKeys> step_size_keys() override {
    return StepSizeKeys{{{"items", &batch_.items}}, &batch_.per_rank};
  }
  BatchSize step_size() const override { return {steps_.size(), "items"}; }
  void continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) override {
    steps_.continue_epoch(epoch, done);
  }
  const SharesConfig* shares() const override { return &batch_.shares; }
  const char* unit() const override { return "item"; }
  int64_t steps_in_epoch(int64_t epoch) override;
  int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) override;
  int64_t train_items() const override { return pretend_.train_items; }
  int64_t items_of(const std::string& split) override;
  double items_per_step() override { return static_cast<double>(steps_.size()); }
  std::unique_ptr<Batch> make_batch(const BatchPosition& position) override;
  void compute_with(const Numerics&) override {}
  LossParts loss(const Batch& batch, int64_t step) override;
  const std::vector<MetricKind>& metrics() const override;
  Evaluation evaluate(World& world, const EvaluationRequest& request) override;

 private:
  // Returns how far the weights of each layer are from their target.
  std::vector<double> distances() const;
  // Returns how long this rank takes for `items` items of a training step.
  std::chrono::nanoseconds time_of(int64_t items, int64_t step) const;
  int64_t first_item_of(const std::string& split) const;

  PretendModelConfig model_;
  PretendConfig pretend_;
  PretendBatchConfig batch_;
  EpochSteps steps_{1};
  Parameters parameters_;
  std::vector<ParameterRef> layers_;
  torch::Device device_ = torch::kCPU;
  uint64_t seed_ = 1;
  int rank_ = 0, ranks_ = 1;
  double slowness_ = 1;  // of this rank
};

std::unique_ptr<Task> make_pretend();

}  // namespace lockstep

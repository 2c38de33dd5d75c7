// A task that only tests have: fits a line through made-up points by least squares.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "nn/numerics.h"
#include "tasks/task.h"

namespace lockstep {

struct PointsConfig {  // section [points]
  int64_t train = 64, dev = 16, batch = 8;
  std::vector<double> milliseconds, room;  // by rank; ranks that are not listed have none
  // How slow it pretends to be.
  double open_seconds = 0, step_seconds = 0, evaluation_seconds = 0, late_seconds = 0;
  int64_t late_step = 0;
  // What goes wrong: values of the batch of a step of the first epoch; a bit of a rank's weights.
  int64_t bad_step = 0, flip_step = 0, flip_rank = 0;
  double bad_factor = 1;

  void describe(Fields& f) {
    f("train", &train, AtLeast{1}, "points to learn from");
    f("dev", &dev, AtLeast{1}, "points to evaluate on");
    f("batch", &batch, AtLeast{1}, "points of a step, all ranks together");
    f("milliseconds", &milliseconds, AtLeast{0}, "that a point takes, by rank");
    f("room", &room, AtLeast{0}, "points for which the memory of a rank suffices; 0: for all");
    f("open_seconds", &open_seconds, AtLeast{0}, "that open() takes");
    f("step_seconds", &step_seconds, AtLeast{0}, "that a micro-batch takes");
    f("evaluation_seconds", &evaluation_seconds, AtLeast{0}, "that a point's evaluation takes");
    f("late_step", &late_step, AtLeast{0}, "the step of the first epoch whose batch is late");
    f("late_seconds", &late_seconds, AtLeast{0}, "by how much");
    f("bad_step", &bad_step, AtLeast{0}, "the step of the first epoch whose values are too large");
    f("bad_factor", &bad_factor, Any{}, "by which factor");
    f("flip_step", &flip_step, AtLeast{0}, "the step in which a bit of the weights flips");
    f("flip_rank", &flip_rank, AtLeast{0}, "on which rank");
  }
};

struct PointsBatchSection {  // section [batch]
  int64_t accumulate = 1;
  SharesConfig shares;

  void describe(Fields& f) {
    f("accumulate", &accumulate, AtLeast{1}, "micro-batches that each rank adds up in one step");
    shares.describe(f);
  }
};

struct PointsBatch : Batch {
  torch::Tensor x, y;  // fp32 [items]
  std::vector<std::pair<std::string, torch::Tensor>> named_tensors() const override {
    return {{"x", x}, {"y", y}};
  }
};

// Fits y = slope * x + offset.
class LineTask : public Task {
 public:
  void describe(Fields& f) override {
    f.section("points", config_, "what it learns from");
    f.section("batch", batch_, "how a step is divided");
  }
  void open(const TaskContext& context) override {
    if (context.world != nullptr) rank_ = static_cast<std::size_t>(context.world->rank());
    pass(config_.open_seconds);
    slope_ = parameters_.add("slope", {1}, zeros());
    offset_ = parameters_.add("offset", {1}, zeros());
    parameters_.allocate(context.device, context.numerics.compute, context.seed);
  }
  std::string data_identity() const override { return fmt::format("{} points", config_.train); }
  Parameters& parameters() override { return parameters_; }
  const char* unit() const override { return "pt"; }
  int64_t accumulate() const override { return batch_.accumulate; }
  const SharesConfig* shares() const override { return &batch_.shares; }
  int64_t steps_in_epoch(int64_t) override {
    return (config_.train + config_.batch - 1) / config_.batch;
  }
  int64_t targets_in_step(int64_t, int64_t step) override {
    return std::min(config_.batch, config_.train - step * config_.batch);
  }
  int64_t train_items() const override { return config_.train; }
  int64_t items_of(const std::string&) override { return config_.dev; }
  double items_per_step() override { return static_cast<double>(config_.batch); }

  std::unique_ptr<Batch> make_batch(const BatchPosition& at) override {
    const int64_t first = at.step_in_epoch * config_.batch;
    const int64_t points = targets_in_step(at.epoch, at.step_in_epoch);
    if (at.epoch == 0 && at.step_in_epoch + 1 == config_.late_step) pass(config_.late_seconds);
    const StepParts::Range range = at.parts.range(points, at.part);
    auto points_of_rank = points_from(first + range.begin, first + range.end);
    const bool bad = at.epoch == 0 && at.step_in_epoch + 1 == config_.bad_step;
    if (bad && points_of_rank) points_of_rank->y *= config_.bad_factor;
    return points_of_rank;
  }

  void compute_with(const Numerics&) override {}
  LossParts loss(const Batch& batch, int64_t step) override {
    if (step > 0) pass(config_.step_seconds);
    if (step > 0 && step == config_.flip_step &&
        rank_ == static_cast<std::size_t>(config_.flip_rank)) {
      slope_->value.view(torch::kInt32).bitwise_xor_(1 << 20);
    }
    const auto& points = static_cast<const PointsBatch&>(batch);
    const double room = of_rank(config_.room), took = of_rank(config_.milliseconds);
    if (room > 0 && static_cast<double>(batch.items) > room) throw std::bad_alloc();
    if (took > 0) {
      std::this_thread::sleep_for(
          std::chrono::duration<double, std::milli>(took * static_cast<double>(batch.items)));
    }
    const torch::Tensor error = slope_->value * points.x + offset_->value - points.y;
    const torch::Tensor squares = error.square().sum();
    return {squares, squares.detach(), (error.detach().abs() < 0.1).sum()};
  }

  const std::vector<MetricKind>& metrics() const override {
    static const std::vector<MetricKind> kinds = {{"loss", false}};
    return kinds;
  }
  Evaluation evaluate(World& world, const EvaluationRequest& request) override {
    torch::NoGradGuard no_grad;
    std::vector<double> squares(static_cast<std::size_t>(config_.dev));  // by point
    for (int64_t i = world.rank(); i < config_.dev && !request.is_stopped(); i += world.size()) {
      pass(config_.evaluation_seconds);
      const auto point = points_from(config_.train + i, config_.train + i + 1);
      squares[static_cast<std::size_t>(i)] = loss(*point, 0).loss.item<double>();
    }
    if (breaks_off(world, request)) return {.broken_off = true};
    world.all_reduce_sum(std::span<double>(squares));
    Evaluation out;
    out.metrics["loss"] = std::accumulate(squares.begin(), squares.end(), 0.0) / config_.dev;
    out.summary = fmt::format("{} loss {:.6f}", request.split, out.metrics["loss"]);
    return out;
  }

 private:
  double of_rank(const std::vector<double>& values) const {
    return rank_ < values.size() ? values[rank_] : 0;
  }
  static void pass(double seconds) {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  // Returns the points [first, last): nearly on a line, and the same on every machine.
  static std::unique_ptr<PointsBatch> points_from(int64_t first, int64_t last) {
    if (first == last) return nullptr;
    auto out = std::make_unique<PointsBatch>();
    const torch::Tensor number = torch::arange(first, last, torch::kFloat32);
    out->x = (number * 12.9898F).sin();
    out->y = out->x * 3 - 2 + (number * 78.233F).sin() * 0.01F;
    out->items = out->targets = last - first;
    return out;
  }

  PointsConfig config_;
  PointsBatchSection batch_;
  std::size_t rank_ = 0;
  Parameters parameters_;
  ParameterRef slope_, offset_;
};

}  // namespace lockstep

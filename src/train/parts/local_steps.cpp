#include "train/parts/local_steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "dist/account/progress.h"
#include "dist/liveness/heartbeat.h"
#include "optim/optimizers/sgd.h"

namespace lockstep {
namespace {

// The figures that ranks agree on at a meeting.
enum Agreed { kLoss, kOutOfTime, kInterrupted, kTraceSteps, kAgreedCount };

// Makes the outer SGD over the weights: before each step its value is the anchor, its gradient the
// mean of anchor minus weights.
std::unique_ptr<Optimizer> make_outer(const LocalStepsConfig& config, Parameters& parameters,
                                      const torch::Tensor& delta) {
  SgdConfig sgd;
  const bool is_mean = config.strategy == "local_sgd";
  sgd.peak_lr = is_mean ? 1 : config.outer_lr;
  sgd.momentum = is_mean ? 0 : config.outer_momentum;
  sgd.nesterov = sgd.momentum > 0;
  return sgd.make({.values = parameters.values(), .gradients = delta, .low = parameters.low()});
}

}  // namespace

std::vector<GradientShape> gradient_shapes(const Parameters& parameters) {
  std::vector<GradientShape> out;
  for (const ParameterRef& p : parameters.list()) {
    const int64_t rows = p->shape.empty() ? 1 : p->shape.front();
    out.push_back({p->offset, rows, rows == 0 ? 0 : p->numel / rows});
  }
  return out;
}

void LocalStepsConfig::describe(Fields& f) {
  f("strategy", &strategy, OneOf{{"every_step", "local_sgd", "diloco"}},
    "when ranks meet: each step; or every local_steps steps, to take the mean of their weights "
    "(local_sgd) or an outer step towards it (diloco)");
  f("local_steps", &local_steps, AtLeast{1}, "steps of a group between two meetings");
  f("local_after", &local_after, AtLeast{0}, "steps that all ranks take together first");
  f("local_group", &local_group, OneOf{{"rank", "machine"}},
    "who takes local steps together: each rank by itself, or the ranks of a machine, which go on "
    "meeting each step through shared memory");
  f("outer_lr", &outer_lr, Above{0}, "of diloco's outer SGD");
  f("outer_momentum", &outer_momentum, Between{0, 1}, "of diloco's outer SGD, Nesterov's");
  f("overlap_steps", &overlap_steps, AtLeast{0},
    "steps that a group goes on while a meeting's sums are under way; 0: it waits");
}

std::string LocalStepsConfig::check() const {
  if (overlap_steps > 0 && overlap_steps >= local_steps) {
    return fmt::format("{} steps, but the next meeting begins after {} (comm.local_steps)",
                       overlap_steps, local_steps);
  }
  return "";
}

ReachHook::ReachHook(World& world, std::unique_ptr<CommHook> whole)
    : world_(world), whole_(std::move(whole)) {}

Completion ReachHook::start(const GradientBucket& bucket) {
  if (reach_ == Reach::kAll) return whole_->start(bucket);
  return world_.start_all_reduce_sum(
      bucket.gradients, fmt::format("sum of gradient bucket {} on this machine", bucket.index),
      reach_);
}

LocalSteps::LocalSteps(const Parts& parts, const LocalStepsConfig& config, CommHookConfig hooks,
                       int64_t bucket_bytes)
    : world_(parts.world),
      parameters_(parts.parameters),
      frozen_(parts.frozen),
      average_(parts.average),
      config_(config) {
  if (!config_.is_on()) return;
  hooks.powersgd.start_step = 0;  // local_after decides when compression starts
  hook_ = make_comm_hook(world_, hooks, gradient_shapes(parameters_));
  anchor_ = parameters_.values().clone();
  delta_ = torch::zeros_like(anchor_);
  if (config_.overlap_steps > 0) sent_ = torch::empty_like(anchor_);
  agreed_ = torch::zeros({kAgreedCount}, torch::kFloat64);
  outer_ = make_outer(config_, parameters_, delta_);
  // Buckets hold whole parameters, as PowerSGD needs them.
  int64_t begin = 0;
  for (const ParameterRef& p : parameters_.list()) {
    if ((p->offset - begin) * 4 >= bucket_bytes) {
      slices_.emplace_back(begin, p->offset);
      begin = p->offset;
    }
  }
  slices_.emplace_back(begin, anchor_.numel());
}

Reach LocalSteps::reach(int64_t step) const {
  if (!config_.is_on() || step <= config_.local_after) return Reach::kAll;
  return config_.local_group == "machine" ? Reach::kMachine : Reach::kAlone;
}

int LocalSteps::group_leader() const {
  if (!config_.is_on()) return 0;
  return config_.local_group == "machine" ? world_.neighbours().front() : world_.rank();
}

void LocalSteps::begin(int64_t step) {
  begun_step_ = step;
  if (config_.is_on()) world_.heartbeat().stop_news().passed(step);
  steps_ = 0;
  since_ = {};
  wished_ = {};
  if (anchor_.defined()) anchor_.copy_(parameters_.values());
}

bool LocalSteps::after_step(const LocalStep& step, const Occasion& occasion, StopWish& stop) {
  meeting_.reset();
  if (!is_local(step.step)) {
    stop = step.stop;
    if (config_.is_on()) world_.heartbeat().stop_news().passed(step.step);
    // The next step may be the first local one.
    if (config_.is_on() && is_local(step.step + 1)) begin(step.step);
    return true;
  }
  ++steps_;
  since_.targets += step.targets;
  since_.all_targets += step.all_targets;
  since_.loss += step.loss;
  since_.average_decay *= step.average_decay;
  since_.stop.out_of_time |= step.stop.out_of_time;
  since_.stop.interrupted |= step.stop.interrupted;
  since_.stop.trace_steps = step.stop.trace_steps;

  // A stop makes the groups meet at once, all after the same step.
  const bool stops = world_.heartbeat().stop_news().ends_at(step.step);
  since_.stop.interrupted |= stops;
  bool last = occasion.last || stops;
  const bool under_way = started_step_ >= 0;
  if (under_way && (last || step.step == started_step_ + config_.overlap_steps)) {
    finish(step.step);
    last = last || wished_.out_of_time || wished_.interrupted;  // equal on all ranks
  }
  const bool regular = (step.step - config_.local_after) % config_.local_steps == 0;
  if (!last && !regular) return false;
  start(step.step);
  if (!last && !occasion.due && config_.overlap_steps > 0) return false;
  finish(step.step);
  stop = wished_;
  begin(step.step);
  return true;
}

// Starts the all-reduce of the anchor minus these weights, weighted by the targets that they were
// trained on.
void LocalSteps::start(int64_t step) {
  torch::NoGradGuard no_grad;
  auto before = std::chrono::steady_clock::now();
  const double share = static_cast<double>(since_.targets) /
                       static_cast<double>(std::max<int64_t>(since_.all_targets, 1));
  torch::Tensor values = parameters_.values();
  at::sub_out(delta_, anchor_, values);
  delta_.mul_(share);
  if (sent_.defined()) sent_.copy_(values);
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const auto [begin, end] = slices_[i];
    running_.push_back(hook_->start(
        {static_cast<int>(i), delta_.narrow(0, begin, end - begin), begin, 1.0, " of a meeting"}));
  }
  agreed_[kLoss] = since_.loss;
  agreed_[kOutOfTime] = since_.stop.out_of_time ? 1 : 0;
  agreed_[kInterrupted] = since_.stop.interrupted ? 1 : 0;
  agreed_[kTraceSteps] = static_cast<double>(since_.stop.trace_steps);
  running_.push_back(world_.start_all_reduce_sum(agreed_, "figures of a meeting"));
  started_step_ = step;
  start_seconds_ = seconds_since(before);
  started_steps_ = std::exchange(steps_, 0);
  started_ = std::exchange(since_, {});
}

void LocalSteps::finish(int64_t step) {
  torch::NoGradGuard no_grad;
  auto before = std::chrono::steady_clock::now();
  world_.progress().enter(Phase::kWait);
  for (const Completion& completion : std::exchange(running_, {})) completion();
  world_.progress().enter(Phase::kOther);
  const double distance = euclidean_norm(delta_);
  if (!std::isfinite(distance)) {
    DivergedError error("step {}: the weights of a group of local steps are not finite", step);
    error.set_advice("a smaller optimizer.lr or comm.outer_lr, fewer comm.local_steps");
    throw error;
  }
  wished_.out_of_time |= agreed_[kOutOfTime].item<double>() > 0;
  wished_.interrupted |= agreed_[kInterrupted].item<double>() > 0;
  wished_.trace_steps = static_cast<int64_t>(agreed_[kTraceSteps].item<double>());
  take_outer_step(step > started_step_);
  started_step_ = -1;
  meeting_ = {.step = step,
              .steps = started_steps_,
              .loss = agreed_[kLoss].item<double>() / static_cast<double>(started_.all_targets),
              .distance = distance,
              .seconds = start_seconds_ + seconds_since(before),
              .sent_bytes = static_cast<int64_t>(delta_.nbytes())};
}

// Moves the anchor, and sets the weights to it. With `keep_way`, adds what the weights moved by
// since the all-reduce started.
void LocalSteps::take_outer_step(bool keep_way) {
  torch::Tensor values = parameters_.values();
  if (keep_way) at::sub_out(sent_, values, sent_);
  values.copy_(anchor_);
  outer_->step({.lr = config_.strategy == "local_sgd" ? 1 : config_.outer_lr});
  frozen_.restore({});
  anchor_.copy_(values);
  if (keep_way) values.add_(sent_);
  if (keep_way) parameters_.refresh_low();
  // Not lerp_(), which rounds once less where a processor can: all ranks keep the same bits.
  if (average_.defined()) average_.add_((anchor_ - average_).mul_(1 - started_.average_decay));
}

std::vector<StateArray> LocalSteps::outer_state() {
  std::vector<StateArray> out;
  if (!outer_) return out;
  for (StateArray& array : outer_->state()) {
    out.push_back({"outer." + array.name, array.data, array.per_layer});
  }
  return out;
}

}  // namespace lockstep

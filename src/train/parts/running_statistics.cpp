#include "train/parts/running_statistics.h"

#include <fmt/format.h>

#include "dist/collectives/fingerprint.h"

namespace lockstep {

RunningStatistics::RunningStatistics(World& world, const Parameters& parameters, bool average)
    : world_(world), parameters_(parameters) {
  if (now().numel() == 0) return;
  remembered_ = now().clone();
  if (average) average_ = now().clone();
}

void RunningStatistics::remember() {
  torch::NoGradGuard no_grad;
  if (remembered_.defined()) remembered_.copy_(now());
}

void RunningStatistics::go_back() {
  torch::NoGradGuard no_grad;
  if (remembered_.defined()) torch::Tensor(now()).copy_(remembered_);
}

void RunningStatistics::move_average(double decay) {
  torch::NoGradGuard no_grad;
  if (average_.defined()) average_.lerp_(now(), 1 - decay);
}

bool RunningStatistics::differ() const {
  if (world_.size() == 1 || now().numel() == 0) return false;
  const uint64_t mine = fingerprint(now());
  return !world_.all_equal(std::span(&mine, 1)).empty();
}

RunningStatistics::Means RunningStatistics::means() const {
  Means out{now(), average_};
  if (!differ()) return out;
  torch::NoGradGuard no_grad;
  for (torch::Tensor* t : {&out.now, &out.average}) {
    if (!t->defined()) continue;
    *t = t->clone();
    world_.all_reduce_sum(*t);
    t->div_(world_.size());
  }
  return out;
}

torch::Tensor RunningStatistics::for_evaluation() const {
  const Means all = means();
  return all.average.defined() ? all.average : all.now;
}

// The names contain the number of ranks: with another number, saved statistics fit no rank.
std::vector<HookArray> RunningStatistics::named(const torch::Tensor& now,
                                                const torch::Tensor& average) const {
  std::vector<HookArray> out = {{fmt::format("buffers.{}.now", world_.size()), now}};
  if (average.defined()) {
    out.push_back({fmt::format("buffers.{}.average", world_.size()), average});
  }
  return out;
}

std::vector<HookArray> RunningStatistics::own() const {
  if (!differ()) return {};
  auto copy = [](const torch::Tensor& t) {
    return t.defined() ? t.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true) : t;
  };
  return named(copy(now()), copy(average_));
}

std::vector<HookArray> RunningStatistics::empty_own() const {
  if (world_.size() == 1 || now().numel() == 0) return {};
  const torch::Tensor room = torch::zeros({now().numel()});
  return named(room, average_.defined() ? room.clone() : average_);
}

void RunningStatistics::take(const std::vector<HookArray>& own) {
  torch::NoGradGuard no_grad;
  torch::Tensor(now()).copy_(own.at(0).data);
  if (own.size() > 1) average_.copy_(own[1].data);
}

}  // namespace lockstep

#include "train/parts/weight_update.h"

#include <algorithm>

#include "train/parts/frozen_weights.h"

namespace lockstep {

namespace {

// Cuts shares of nearly equal length that begin at a cache line.
std::vector<int64_t> cut_shares(int64_t total, int ranks) {
  std::vector<int64_t> cuts;
  for (int64_t r = 0; r < ranks; ++r) {
    cuts.push_back(total * r / ranks / kParameterAlignment * kParameterAlignment);
  }
  cuts.push_back(total);
  return cuts;
}

}  // namespace

WeightUpdate::WeightUpdate(World& world, Parameters& parameters, const OptimizerConfig& config,
                           const UpdateOptions& options)
    : world_(world),
      parameters_(parameters),
      sharded_(options.sharded && world.size() > 1),
      cuts_(cut_shares(parameters.values().numel(), world.size())) {
  if (options.average) average_ = parameters.values().clone();
  std::vector<bool> decays = names_match(parameters, options.no_decay, "training.no_decay");
  for (std::size_t i = 0; i < decays.size(); ++i) {
    const bool is_vector = parameters.list()[i]->shape.size() < 2;
    decays[i] = !decays[i] && (options.decay_vectors || !is_vector);
  }
  layers_ = own_layers(decays);
  auto own = [this](const torch::Tensor& flat) {
    return flat.defined() && sharded_ ? flat.narrow(0, begin(), end() - begin()) : flat;
  };
  optimizer_ = config.make({.values = own(parameters.values()),
                            .gradients = own(parameters.gradients()),
                            .low = own(parameters.low()),
                            .average = own(average_),
                            .layers = layers_});
}

std::vector<LayerSlice> WeightUpdate::own_layers(const std::vector<bool>& decays) const {
  const int64_t from = sharded_ ? begin() : 0, to = sharded_ ? end() : cuts_.back();
  std::vector<LayerSlice> layers;
  for (std::size_t i = 0; i < decays.size(); ++i) {
    const ParameterRef& p = parameters_.list()[i];
    const int64_t first = std::clamp(p->offset, from, to);
    const int64_t last = std::clamp(p->offset + p->numel, from, to);
    layers.push_back({.begin = first - from,
                      .end = last - from,
                      .first = first - p->offset,
                      .row_width = p->is_table ? p->shape[1] : 0,
                      .decays = decays[i],
                      .value = parameters_.values().narrow(0, p->offset, p->numel),
                      .gradient = parameters_.gradients().narrow(0, p->offset, p->numel)});
    if (first == last) layers.back().first = 0;
  }
  return layers;
}

void WeightUpdate::step(const StepSize& size) {
  optimizer_->step(size);
  if (sharded_) fetch_other_shares();
}

void WeightUpdate::fetch_other_shares() {
  torch::NoGradGuard no_grad;
  world_.all_gather_slices(parameters_.values(), cuts_);
  for (std::size_t r = 0; r + 1 < cuts_.size(); ++r) {
    if (static_cast<int>(r) == world_.rank()) continue;
    auto share = [&](const torch::Tensor& flat) {
      return flat.narrow(0, cuts_[r], cuts_[r + 1] - cuts_[r]);
    };
    share(parameters_.gradients()).zero_();
    if (parameters_.low().defined()) share(parameters_.low()).copy_(share(parameters_.values()));
  }
}

void WeightUpdate::gather_average() {
  if (sharded_ && average_.defined()) world_.all_gather_slices(average_, cuts_);
}

OptimizerState WeightUpdate::gather_state() {
  OptimizerState out{optimizer_->state(), optimizer_->steps_done};
  if (!sharded_) return out;
  for (auto& [name, array, per_layer] : out.arrays) {
    if (per_layer) continue;  // every rank has all of it
    torch::Tensor whole = torch::empty({cuts_.back()}, array.options());
    whole.narrow(0, begin(), end() - begin()).copy_(array);
    world_.all_gather_slices(whole, cuts_);
    array = whole;
  }
  return out;
}

void WeightUpdate::set_state(const OptimizerState& state) {
  torch::NoGradGuard no_grad;
  auto own = optimizer_->state();
  TORCH_CHECK(own.size() == state.arrays.size(), "state of another optimizer");
  for (std::size_t i = 0; i < own.size(); ++i) {
    const torch::Tensor& whole = state.arrays[i].data;
    const torch::Tensor& mine = own[i].data;
    if (whole.is_same(mine)) continue;
    mine.copy_(whole.narrow(0, sharded_ && !own[i].per_layer ? begin() : 0, mine.numel()));
  }
  optimizer_->steps_done = state.steps_done;
}

int64_t bytes_of_update(const Parameters& parameters, const OptimizerConfig& config, bool average,
                        int64_t sharers) {
  const torch::Tensor whole = parameters.values().to(torch::kMeta);
  const torch::Tensor part = torch::empty({whole.numel() / sharers}, whole.options());
  const auto optimizer = config.make(
      {.values = part, .gradients = part, .low = {}, .average = {}, .layers = {LayerSlice{}}});
  int64_t bytes = 2 * static_cast<int64_t>(whole.nbytes());
  if (parameters.low().defined()) bytes += static_cast<int64_t>(parameters.low().nbytes());
  if (average) bytes += static_cast<int64_t>(whole.nbytes());
  for (const StateArray& array : optimizer->state()) {
    if (!array.per_layer) bytes += static_cast<int64_t>(array.data.nbytes());
  }
  return bytes;
}

}  // namespace lockstep

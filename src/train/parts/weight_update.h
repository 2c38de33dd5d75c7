// Applies the optimizer over the ranks of a run. Every rank updates all the weights or, when
// sharded, a contiguous share of them, which the others then fetch: each rank keeps only a share of
// the optimizer's arrays (Rajbhandari et al. 2020, "ZeRO", section 5.1, stage 1). The weights are
// the same bits either way.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/collectives/world.h"
#include "nn/parameters.h"
#include "optim/optimizers/optimizer.h"

namespace lockstep {

struct UpdateOptions {
  bool average = false;  // keep a moving average of the weights
  bool sharded = false;  // has no effect with one rank
  // Which weights are exempt from the optimizer's weight decay.
  bool decay_vectors = true;               // false: exempts one-dimensional weights (biases, norms)
  std::vector<std::string> no_decay = {};  // regular expressions for whole names of exempt weights
};

// When sharded, every call but the accessors is collective.
class WeightUpdate {
 public:
  // `world` and `parameters` must outlive this; the parameters' arrays are updated in place. Throws
  // ConfigError for an expression of `no_decay` that matches no weight.
  WeightUpdate(World& world, Parameters& parameters, const OptimizerConfig& config,
               const UpdateOptions& options);

  // Updates weights, their 16-bit copy and average; leaves all gradients zero. Throws MachineError
  // when a peer is lost.
  void step(const StepSize& size);

  // Every parameter and the part of it that this rank updates, for factors that differ by layer
  // (LARC).
  const std::vector<LayerSlice>& layers() const { return layers_; }

  // fp32 [total], undefined without averaging. When sharded, other ranks' shares are as of the last
  // gather_average().
  const torch::Tensor& average() const { return average_; }
  void gather_average();

  // Returns whole arrays: the optimizer's own or, when sharded, copies.
  OptimizerState gather_state();
  void set_state(const OptimizerState& state);

 private:
  int64_t begin() const { return cuts_[static_cast<std::size_t>(world_.rank())]; }
  int64_t end() const { return cuts_[static_cast<std::size_t>(world_.rank()) + 1]; }
  std::vector<LayerSlice> own_layers(const std::vector<bool>& decays) const;
  void fetch_other_shares();

  World& world_;
  Parameters& parameters_;
  torch::Tensor average_;
  bool sharded_;
  std::vector<int64_t> cuts_;  // rank r updates the elements [cuts_[r], cuts_[r + 1])
  std::vector<LayerSlice> layers_;
  std::unique_ptr<Optimizer> optimizer_;
};

// Returns the bytes that weights, gradients, average and optimizer take on a rank, where `sharers`
// ranks share the optimizer's arrays. It allocates nothing.
int64_t bytes_of_update(const Parameters& parameters, const OptimizerConfig& config, bool average,
                        int64_t sharers);

}  // namespace lockstep

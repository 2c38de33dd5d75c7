// The optimizer over the ranks of a run. Every rank updates all the weights or, sharded, a
// contiguous share of them, which the others then fetch: each keeps a share of the optimizer's
// arrays only (Rajbhandari et al. 2020, "ZeRO", section 5.1, stage 1). The weights come out the
// same bits either way.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/collectives/world.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"

namespace lockstep {

struct UpdateOptions {
  bool average = false;  // keep a moving average of the weights
  bool sharded = false;  // of no effect with one rank
  // Which weights the optimizer's weight decay leaves alone.
  bool decay_vectors = true;               // false: those of one dimension, as biases and norms
  std::vector<std::string> no_decay = {};  // regular expressions for whole names
};

// Every call is collective when sharded: all ranks make it.
class WeightUpdate {
 public:
  // `world` and `parameters` must outlive this; their arrays are updated in place. ConfigError for
  // an expression of `no_decay` that matches no weight.
  WeightUpdate(World& world, Parameters& parameters, const OptimizerConfig& config,
               const UpdateOptions& options);

  // Updates weights, their 16-bit copy and average; leaves all gradients zero.
  // Throws MachineError when a peer is lost.
  void step(const StepSize& size);

  // Every parameter and what this rank updates of it: for factors that differ by layer (LARC).
  const std::vector<LayerSlice>& layers() const { return layers_; }

  // fp32 [total], undefined without averaging. Sharded, other ranks' shares are those of the last
  // gather_average().
  const torch::Tensor& average() const { return average_; }
  void gather_average();

  // Whole arrays: the optimizer's own, or sharded, copies.
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

}  // namespace lockstep

// Keeps the running statistics of batch norms (Parameters::buffers()) over the ranks of a run. Each
// rank updates its own from the images it sees, so they differ unless batch norms share their
// statistics. Evaluations, checkpoints and later uses take their mean over the ranks, which is what
// a single rank would have, up to rounding, since the updates are linear. Each rank continues with
// its own.
#pragma once

#include <torch/types.h>

#include <vector>

#include "dist/collectives/world.h"
#include "dist/gradients/comm_hooks.h"
#include "nn/parameters.h"

namespace lockstep {

class RunningStatistics {
 public:
  // `world` and `parameters` must outlive this. `average`: also keep a moving average of the
  // statistics, to go with that of the weights.
  RunningStatistics(World& world, const Parameters& parameters, bool average);

  // remember() comes before a step's forward pass; go_back() restores when the step is lost or
  // repeated, since a forward pass that left the range of 16 bits would spoil the statistics for
  // good.
  void remember();
  void go_back();

  void move_average(double decay);  // to be called after a step that counts

  // Means over all ranks, flat as Parameters::buffers(). `average` is undefined without averaging.
  // They share memory with this object where all ranks have equal statistics. Collective.
  struct Means {
    torch::Tensor now, average;
  };
  Means means() const;

  // Returns the means that go with the averaged weights where there are some, else with the
  // weights. Collective.
  torch::Tensor for_evaluation() const;

  // This rank's arrays, to be filled from a checkpoint.
  const torch::Tensor& now() const { return parameters_.buffers(); }
  const torch::Tensor& average() const { return average_; }

  // Returns what a checkpoint must hold for each rank besides the means: copies on the CPU, or
  // nothing where all ranks have equal statistics. Collective.
  std::vector<HookArray> own() const;
  // empty_own() returns arrays of the same names and lengths to read into; take() puts them in
  // place.
  std::vector<HookArray> empty_own() const;
  void take(const std::vector<HookArray>& own);

 private:
  bool differ() const;  // returns whether statistics differ between ranks; collective
  std::vector<HookArray> named(const torch::Tensor& now, const torch::Tensor& average) const;

  World& world_;
  const Parameters& parameters_;
  torch::Tensor remembered_, average_;
};

}  // namespace lockstep

// The running statistics of batch norms (Parameters::buffers()) over the ranks of a run. Each rank
// moves its own by the images it sees, so they differ unless batch norms share their statistics.
// What is evaluated, saved and used later is their mean over the ranks, which is what one rank
// would have up to rounding, for they move linearly; each rank's own go on as they are.
#pragma once

#include <torch/types.h>

#include <vector>

#include "dist/collectives/world.h"
#include "dist/gradients/comm_hooks.h"
#include "nn/parameters.h"

namespace lockstep {

class RunningStatistics {
 public:
  // `world` and `parameters` must outlive this. average: with the moving average of the weights
  // goes one of their statistics.
  RunningStatistics(World& world, const Parameters& parameters, bool average);

  // Before a step's forward pass; and when the step is lost or repeated: a forward pass that left
  // the range of 16 bits would spoil them for good.
  void remember();
  void go_back();

  void move_average(double decay);  // after a step that counts

  // Of all ranks, flat as Parameters::buffers(). `average` is undefined without averaging. Shared
  // with this where all ranks have the same ones. Collective.
  struct Means {
    torch::Tensor now, average;
  };
  Means means() const;

  // For the averaged weights where there are some, else for the weights. Collective.
  torch::Tensor for_evaluation() const;

  // This rank's arrays, to be read into from a checkpoint.
  const torch::Tensor& now() const { return parameters_.buffers(); }
  const torch::Tensor& average() const { return average_; }

  // What a checkpoint must hold for each rank besides the means: nothing where all ranks have the
  // same. Copies, on the CPU. Collective.
  std::vector<HookArray> own() const;
  // Arrays of the same names and lengths; take() puts them in place.
  std::vector<HookArray> empty_own() const;
  void take(const std::vector<HookArray>& own);

 private:
  bool differ() const;  // by rank; collective
  std::vector<HookArray> named(const torch::Tensor& now, const torch::Tensor& average) const;

  World& world_;
  const Parameters& parameters_;
  torch::Tensor remembered_, average_;
};

}  // namespace lockstep

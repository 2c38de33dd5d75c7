// Sums the gradients of all ranks while the backward pass still runs (Li et al. 2020, "PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training", section 3.2: bucketing and
// overlap). The gradients lie in one flat array, so that nothing is copied into buckets or back.
//
// Invariant: buckets start in the same order on every rank, from the end of the array, as backward
// passes go, whatever order the gradients come in. So the ranks' operations always match.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dist/collectives/world.h"
#include "dist/gradients/comm_hooks.h"

namespace lockstep {

struct ReducedParameter {
  torch::Tensor
      variable;        // a leaf that requires a gradient; its grad() is a view of the flat array
  int64_t offset = 0;  // of its gradient in the flat array, in elements
  int64_t numel = 0;
};

struct ReducerOptions {
  int64_t bucket_bytes = int64_t{8} << 20;
  int64_t first_bucket_bytes = int64_t{1} << 20;  // small, so that communication begins early
  bool whole_parameters = false;  // cut buckets only between parameters; they may be larger then
  bool even_alone = false;        // one rank uses the hook too, for timing
};

struct ReduceTimings {
  double wait_seconds = 0;  // in finish(): communication that the backward pass did not hide
  int64_t bytes = 0;        // of reduced gradients
  int buckets = 0;
  int overlapped_buckets = 0;  // buckets started before finish()
};

// One step:  prepare(true); loss.backward(); ReduceTimings t = finish();
// With gradient accumulation, call prepare(false) before all backward passes but the last.
//
// The result is the sum over the ranks, not the mean: the caller, who knows the
// number of tokens, divides.
class GradientReducer {
 public:
  // `parameters` come in registration order with ascending offsets, each once (tied weights too).
  // `gradients` [total] is contiguous; what lies between parameters is reduced too. `hook` and
  // `world` must outlive this. REQUIRES the same layout on every rank. With one rank nothing is
  // registered, unless even_alone.
  GradientReducer(World& world, CommHook& hook, std::vector<ReducedParameter> parameters,
                  torch::Tensor gradients, const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Call before each backward pass. False: gradients only accumulate. `unit` of the step's buckets
  // is for hooks (GradientBucket).
  void prepare(bool will_reduce, double unit = 1);
  // Call after the backward pass: starts the remaining buckets (those of unused parameters, or all
  // on a rank without a share of the step). Operations that follow then have the same place in the
  // order on every rank. finish() does this if it was not called.
  void start_rest();
  // Waits for all buckets; on return the flat array holds the sums. Throws MachineError. Does
  // nothing after prepare(false).
  ReduceTimings finish();

  // For a gradient that was completed outside autograd. Those of autograd are marked automatically,
  // also when a backward function added to grad() itself and returned nothing.
  void mark_ready(std::size_t parameter);

  int bucket_count() const { return static_cast<int>(buckets_.size()); }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;  // elements of the flat array
    int parameters = 0;          // parameters that lie in it, whole or in part
    int pending = 0;             // of these, without a gradient yet in this pass
  };
  struct Hooked;  // a parameter, its autograd node and the key of our hook there

  void cut_buckets(const ReducerOptions& options);
  int64_t begin_of_parameter_at(int64_t element) const;
  void add_hook(std::size_t parameter);
  void start_ready_buckets();

  World& world_;
  CommHook& hook_;
  torch::Tensor gradients_;
  std::vector<Bucket> buckets_;  // from the end of the array to its begin
  std::vector<Hooked> parameters_;

  std::mutex mutex_;  // CUDA's backward pass runs on a thread of autograd
  bool reducing_ = false;
  double unit_ = 1;
  std::size_t next_ = 0;                   // next bucket to start
  std::optional<std::size_t> overlapped_;  // buckets that had started by the time of start_rest()
  std::vector<Completion> running_;
};

}  // namespace lockstep

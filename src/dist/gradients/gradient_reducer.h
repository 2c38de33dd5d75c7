// Sums the gradients of all ranks while the backward pass still runs (Li et al. 2020, "PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training", section 3.2: bucketing and
// overlap), on gradients that lie in one flat array, so that nothing is copied into buckets or
// back.
//
// Invariant: buckets start in the same order on every rank - from the end of the array, as backward
// passes go - whatever order the gradients come in, so the ranks' operations always match.
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
  int64_t first_bucket_bytes = int64_t{1} << 20;  // small: communication begins early
  bool whole_parameters = false;  // buckets end where parameters do, and may be larger for that
  bool even_alone = false;        // one rank hands its buckets to the hook too, to be timed
};

struct ReduceTimings {
  double wait_seconds = 0;  // in finish(): communication that the backward pass did not hide
  int64_t bytes = 0;        // of gradients reduced
  int buckets = 0;
  int overlapped_buckets = 0;  // of them started before finish()
};

// One step:  prepare(true); loss.backward(); ReduceTimings t = finish();
// With accumulation: prepare(false) before all backward passes but the last.
//
// The result is the sum over the ranks, not a mean: who knows the number of tokens divides.
class GradientReducer {
 public:
  // `parameters` in registration order, offsets ascending, each once (tied weights too);
  // `gradients` [total], contiguous; what lies between parameters is reduced along. `hook` and
  // `world` must outlive this. REQUIRES the same layout on every rank. With one rank nothing is
  // registered, unless even_alone.
  GradientReducer(World& world, CommHook& hook, std::vector<ReducedParameter> parameters,
                  torch::Tensor gradients, const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before each backward pass. False: gradients only accumulate. `unit`: of the step's buckets, for
  // hooks (GradientBucket).
  void prepare(bool will_reduce, double unit = 1);
  // After the backward pass: starts the buckets that are still due (of unused parameters, or all of
  // a rank without a share of the step). What other operations follow then has the same place among
  // them on every rank. finish() does it where this was not called.
  void start_rest();
  // Waits for all buckets.
  // On return the flat array holds the sums. Throws MachineError. Does nothing after
  // prepare(false).
  ReduceTimings finish();

  // For a gradient that was completed outside of autograd; autograd's own come by themselves, also
  // when a backward function added to grad() itself and returned nothing.
  void mark_ready(std::size_t parameter);

  int bucket_count() const { return static_cast<int>(buckets_.size()); }

 private:
  struct Bucket {
    int64_t begin = 0, end = 0;  // elements of the flat array
    int parameters = 0;          // that lie in it, whole or in part
    int pending = 0;             // of them without their gradient in this pass
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

  std::mutex mutex_;  // CUDA's backward pass runs on a thread of autograd's
  bool reducing_ = false;
  double unit_ = 1;
  std::size_t next_ = 0;                   // bucket to start
  std::optional<std::size_t> overlapped_;  // buckets that had started by start_rest()
  std::vector<Completion> running_;
};

}  // namespace lockstep

// Holds what a few real steps of a configuration tell about the whole run, which is all that
// `lockstep plan` knows of it. `lockstep train --bench-json` writes it as JSON; it knows nothing of
// torch.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

struct MeasuredStep {  // of rank 0, in seconds; seconds = compute + wait + data
  double seconds = 0, compute = 0, wait = 0, data = 0;
  int64_t targets = 0;  // of the whole step, over all ranks
};

struct MeasuredBucket {
  int64_t bytes = 0;         // of fp32 gradients
  double ready_seconds = 0;  // since the step's computation began; median over the steps
};

// The lengths that the configuration asks for; 0: none, as there.
struct RunLength {
  int64_t steps = 0, epochs = 0;
  double minutes = 0;
  int64_t evaluation_every = 0, evaluation_limit = 0, checkpoint_every = 0, checkpoints_kept = 1;
};

struct RunMeasurement {
  std::string unit, device, precision, hook, evaluation_split;
  int ranks = 1;     // that took the steps, on this machine
  int of_ranks = 1;  // among which each step was split
  int threads = 1;   // per rank
  bool sharded = false;
  double wire_factor = 1;      // bytes sent per byte of fp32 gradients, with comm.hook
  int64_t local_steps = 1;     // steps between all-reduces over hosts
  int streams = 4;             // connections between two hosts
  int64_t weights = 0;         // number of weights
  int64_t gradient_bytes = 0;  // of the flat fp32 array, with padding
  // For hooks that send factors of matrices: the sum of rows + columns over all matrices, and how
  // many weights are in no matrix.
  int64_t matrix_sides = 0, other_numbers = 0;
  int64_t steps_in_epoch = 0;
  double targets_per_step = 0;  // mean over the first epoch
  RunLength length;
  std::vector<MeasuredStep> steps;  // without the warm-up
  std::vector<MeasuredBucket> buckets;
  std::vector<int64_t> peak_bytes;  // by rank
  int64_t checkpoint_bytes = 0;
  double checkpoint_seconds = 0;  // until it is on the disk of run.folder
  double held_seconds = 0;        // of these, for which training stands still
  // An evaluation takes about first + (items - 1) * each. Measured with hardly trained weights,
  // which decode longer outputs than trained ones.
  double evaluation_first_seconds = 0, evaluation_each_seconds = 0;
};

nlohmann::ordered_json to_json(const RunMeasurement& measurement);
// Throws nlohmann::json::exception for JSON that to_json() did not write.
RunMeasurement measurement_from_json(const nlohmann::ordered_json& json);

}  // namespace lockstep

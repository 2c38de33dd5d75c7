// Writes console lines as PyTorch's ImageNet example and its descendants do, for people and scripts
// that read such lines (logging.style = "imagenet"):
//
//   Epoch: [1][2499/2503] Loss 2.8808e+00 (3.2069e+00) Acc@1 43.36 (33.21) Acc@5 64.84 (57.46)
//    * Train Acc@1 33.210 Train Acc@5 57.460
//   Test: [99/391] Loss 2.2407e+00 (2.1663e+00) Acc@1 43.75 (47.61) Acc@5 75.00 (74.20)
//    * Val Acc@1 46.780 Val Acc@5 72.148
//   Training complete in: 0:48:45
//
// Epochs and steps count from 0. Each figure is that of the step, over all ranks, followed by its
// mean over the images of the epoch so far (since the start, where a run was resumed). Lines of a
// test have rank 0's batches, as in PyTorch's example each process prints its own; the line after
// them has all images.
#pragma once

#include <chrono>
#include <string>

#include "train/records/observers.h"

namespace lockstep {

// Returns the "Epoch:" line; `epoch` has the means.
std::string epoch_line(const StepRecord& step, const StepRecord& epoch);
// Returns the "Test:" line; `all`: sums over the batches so far.
std::string test_line(const EvaluationProgress& batch, const EvaluationProgress& all);
// Returns "Val" for val.
std::string split_title(const std::string& split);
// Returns 0:48:45.
std::string clock_text(double seconds);

class ImagenetLines : public Observer {
 public:
  // Writes a line every `every` steps, or batches of an evaluation, and at the end of each epoch or
  // evaluation; evaluations are of `split`.
  ImagenetLines(int64_t every, const std::string& split);
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation_batch(const EvaluationProgress& progress) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const CheckpointRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  int64_t every_;
  std::string title_;  // of the split
  StepRecord sum_;     // of the epoch so far: figures times images, and the images
  double top5_sum_ = 0;
  EvaluationProgress tested_;  // sums over the evaluation so far
  int64_t epoch_ = -1;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace lockstep

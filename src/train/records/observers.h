// Defines what the training loop reports and the interface of those who listen: the console line,
// metrics.jsonl, TensorBoard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/step_times.h"
#include "tasks/task.h"

namespace lockstep {

// One optimizer step. Sums are over all ranks; times are of this rank.
struct StepRecord {
  int64_t step = 0, total_steps = 0, epoch = 0;
  int64_t step_in_epoch = 0, steps_in_epoch = 0;  // step_in_epoch counts from 0
  double loss = 0;                                // mean over targets, with label smoothing

  double nll = 0;              // mean over targets of -log p(target)
  double accuracy = 0;         // share of targets that are the most likely entry
  std::optional<double> top5;  // share of targets among the five most likely entries
  double lr = 0;
  double gradient_norm = 0;          // of the mean gradient, before clipping
  std::optional<double> loss_scale;  // of this step, in fp16
  int64_t skipped_steps = 0;         // of the run so far, because fp16 gradients overflowed
  int64_t targets = 0, sources = 0, items = 0;
  double seconds = 0;  // the whole step; = compute + wait + data
  double compute_seconds = 0;
  double wait_seconds = 0;  // waiting for other ranks and the network
  double data_seconds = 0;  // waiting for the next batch
  // These four parts add up to compute_seconds.
  double forward_seconds = 0, backward_seconds = 0, optimizer_seconds = 0, other_seconds = 0;
  double hidden_seconds = 0;  // part of forward and backward that overlapped an exchange
  int64_t sent_bytes = 0;     // of gradients, as this rank's share of the algorithm
  // Payload through sockets and shared memory, to others and from them.
  int64_t payload_sent_bytes = 0, received_bytes = 0;
  bool local = false;  // loss, norm, sources and items are of this rank's group (local_steps.h)
};

// A synchronization of the groups of local steps (local_steps.h).
struct MeetingRecord {
  int64_t step = 0, steps = 0;  // after which step, and over how many
  double loss = 0;              // mean over the targets of all groups in these steps
  double distance = 0;          // norm of the groups' mean displacement in these steps
  double seconds = 0;           // for which training stood still
  int64_t sent_bytes = 0;       // that this rank put into the sum, as fp32
};

struct EvaluationRecord {
  int64_t step = 0, epoch = 0;
  double seconds = 0;
  std::vector<std::string> improved;  // metrics with a new best
  const Evaluation* result = nullptr;
};

struct CheckpointRecord {  // of a checkpoint that is complete now
  int64_t step = 0;
  double seconds = 0;        // for which training stood still
  double write_seconds = 0;  // from the first byte to the last
  int64_t bytes = 0;
  std::string name;
};

// Something that was wrong with a step, or with a rank, and what was done.
struct InterventionRecord {
  int64_t step = 0;
  std::string kind = "step";  // or "unequal_ranks"
  std::string action;         // "skip", "roll_back" or "mend"
  std::string why;
};

// Observers exist on rank 0 only. They may throw MachineError (a full disk).
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_start(int64_t first_step, int64_t total_steps) {}
  virtual void on_step(const StepRecord& record) {}
  // Tells the times of every rank for an earlier step. Called for all steps in their order.
  virtual void on_times(const StepTimes& times) {}
  virtual void on_meeting(const MeetingRecord& record) {}
  // What a batch of rank 0's part of an evaluation gave, where its task tells it.
  virtual void on_evaluation_batch(const EvaluationProgress& progress) {}
  virtual void on_evaluation(const EvaluationRecord& record) {}
  virtual void on_checkpoint(const CheckpointRecord& record) {}
  // The checkpoint of `step`, told before, has the evaluation of that step now.
  virtual void on_checkpoint_renewed(int64_t step) {}
  virtual void on_intervention(const InterventionRecord& record) {}
  // reason: "steps", "epochs", "minutes", "patience" or "signal".
  virtual void on_end(const std::string& reason) {}
};

using Observers = std::vector<std::unique_ptr<Observer>>;

}  // namespace lockstep

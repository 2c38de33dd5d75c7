// Predicts a run's steps from measured compute and a measured network, before the run. Pure
// functions on figures; docs/before-a-run.md#the-model derives every formula. Latency and bandwidth
// of a link are those of the whole path - kernel, sums, link - because they are fitted on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/account/exchange_model.h"
#include "train/records/run_measurement.h"

namespace lockstep {

struct ExchangeTiming {  // a measured sum
  double bytes = 0, seconds = 0, cpu_seconds = 0;
};

// The line through two sizes. Where delays hide the transfer of the larger one, it is taken to be a
// tenth of its time. MachineError when the larger one is much quicker, or no larger.
Link fit_link(const ExchangeTiming& small, const ExchangeTiming& large, int hosts);

struct ReadyBucket {
  double bytes = 0;          // on the wire
  double ready_seconds = 0;  // since the begin of the step, ascending
};

// When the last bucket has arrived everywhere. Buckets start in order once they are ready; `lanes`
// of them may be under way, then the next waits; the link carries one at a time, so that of two
// under way only the latencies overlap.
double last_arrival_seconds(const std::vector<ReadyBucket>& buckets, int hosts, const Link& link,
                            int lanes);

// The compute of one rank, from measurements of the same configuration.
struct ComputeModel {
  // Forward and backward passes of a step take fixed + per_target * targets of the rank.
  double fixed_seconds = 0, seconds_per_target = 0;
  double update_seconds = 0;                           // norm, clipping, optimizer
  double data_seconds = 0;                             // waiting for the next batch
  double local_wait_seconds = 0;                       // for the other ranks of the machine
  double targets_per_step = 0;                         // over all ranks
  double gradient_bytes = 0;                           // fp32
  std::vector<double> bucket_bytes, ready_before_end;  // seconds before the passes end, at `loads`
  double measured_pass_seconds = 0;                    // at which ready_before_end was measured
};

// `whole`: split as among the ranks of the run. `half`: among twice as many; without steps it is
// not used, and all the time of a pass counts as proportional to its targets.
ComputeModel make_compute_model(const RunMeasurement& whole, const RunMeasurement& half);
// The same from a given step time: nothing is known of its parts but that two thirds of the passes
// are backward (a product forward, two backward), in which gradients come evenly.
ComputeModel compute_model_from(double step_seconds, const RunMeasurement& facts);

// What a run is planned for.
struct Scenario {
  std::string name;  // "bf16 on the wire"
  std::string note;  // what else it changes; empty: nothing
  int hosts = 1, ranks_per_host = 1;
  int cores_per_host = 1;
  Link link;
  int lanes = 4;                // sums under way at a time: streams
  double wire_factor = 1;       // bytes sent for a byte of fp32 gradient
  double accumulate = 1;        // times as many targets a step
  int64_t local_steps = 1;      // steps between exchanges of the weights; 1: gradients every step
  bool sharded = false;         // weights are gathered after each step
  bool changes_result = false;  // what is learned, beyond rounding
};

struct StepPrediction {
  double seconds = 0;  // = compute + wait + data
  double compute = 0, wait = 0, data = 0;
  double exchange = 0;    // all exchanges, hidden or not
  double sent_bytes = 0;  // by a host, and received
  double targets = 0;     // of the step, over all ranks
  double targets_per_second() const { return seconds > 0 ? targets / seconds : 0; }
};

StepPrediction predict_step(const ComputeModel& compute, const Scenario& scenario);

// The whole run.
struct RunPrediction {
  int64_t steps = 0;
  double train_seconds = 0, evaluation_seconds = 0, checkpoint_seconds = 0;
  int64_t evaluations = 0, checkpoints = 0;
  double sent_bytes = 0;    // by a host
  bool ends_early = false;  // training.minutes is over first
  double seconds() const { return train_seconds + evaluation_seconds + checkpoint_seconds; }
};

// `evaluation_seconds`: of one, on one host's ranks alone.
RunPrediction predict_run(const StepPrediction& step, const RunMeasurement& facts,
                          const Scenario& scenario, double evaluation_seconds);

}  // namespace lockstep

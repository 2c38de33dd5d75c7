// Predicts a run's steps from measured compute and a measured network, before the run, by pure
// functions; docs/before-a-run.md#the-model derives every formula. Latency and bandwidth of a link
// are those of the whole path (kernel, summing, link), because they are fitted on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/account/exchange_model.h"
#include "train/folder/run_measurement.h"

namespace lockstep {

struct ExchangeTiming {  // a measured all-reduce
  double bytes = 0, seconds = 0, cpu_seconds = 0;
};

// Whether delays hide the transfer of the larger one: no bandwidth can be seen then, only that it
// takes less than a tenth of the time.
bool hides_transfer(const ExchangeTiming& small, const ExchangeTiming& large);
// Fits the line through two sizes; where hides_transfer(), with the least bandwidth that the link
// has. Throws MachineError when the larger one is much faster than the smaller one, or not larger.
Link fit_link(const ExchangeTiming& small, const ExchangeTiming& large, int hosts);

struct ReadyBucket {
  double bytes = 0;          // on the wire
  double ready_seconds = 0;  // since the step began, ascending
};

// Returns when the last bucket has arrived everywhere. Buckets start in order once they are ready.
// At most `lanes` of them are under way; the next one waits. The link carries one bucket at a time,
// so that only latencies overlap.
double last_arrival_seconds(const std::vector<ReadyBucket>& buckets, int hosts, const Link& link,
                            int lanes);

// The compute of one rank, from measurements of the same configuration.
struct ComputeModel {
  // A step's forward and backward passes take fixed + per_target * targets of the rank.
  double fixed_seconds = 0, seconds_per_target = 0;
  double update_seconds = 0;                           // norm, clipping, optimizer
  double data_seconds = 0;                             // waiting for the next batch
  double local_wait_seconds = 0;                       // for the other ranks of the machine
  double targets_per_step = 0;                         // over all ranks
  double gradient_bytes = 0;                           // fp32
  std::vector<double> bucket_bytes, ready_before_end;  // seconds before the passes end
  double measured_pass_seconds = 0;                    // of the passes that were measured

  // Returns for how long a step leaves the link idle: until its first bucket is ready.
  double idle_link_seconds() const;
};

// `whole` is split as among the ranks of the run, `half` among twice as many. Without steps in
// `half`, all of a pass's time counts as proportional to its targets.
ComputeModel make_compute_model(const RunMeasurement& whole, const RunMeasurement& half);
// Makes the model from a given step time. Of its parts it assumes that two thirds of the passes are
// backward (one product forward, two backward), and that gradients become ready at even intervals
// in it.
ComputeModel compute_model_from(double step_seconds, const RunMeasurement& facts);

// What a run is planned for.
struct Scenario {
  std::string name;  // "bf16 on the wire"
  std::string note;  // what else it changes; empty: nothing
  int hosts = 1, ranks_per_host = 1;
  int cores_per_host = 1;
  Link link;
  int lanes = 4;                // all-reduces under way at a time: streams
  double wire_factor = 1;       // bytes sent per byte of fp32 gradient
  double accumulate = 1;        // factor by which a step has more targets
  int64_t local_steps = 1;      // steps between exchanges of weights; 1: gradients every step
  bool sharded = false;         // weights are gathered after each step
  bool changes_result = false;  // what is learned, by more than rounding
};

struct StepPrediction {
  double seconds = 0;  // = compute + wait + data
  double compute = 0, wait = 0, data = 0;
  double exchange = 0;    // all exchanges, hidden or not
  double sent_bytes = 0;  // by a host, which receives as much
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
  bool ends_early = false;  // training.minutes ends it
  double seconds() const { return train_seconds + evaluation_seconds + checkpoint_seconds; }
};

// `evaluation_seconds` is for one evaluation on one host's ranks alone.
RunPrediction predict_run(const StepPrediction& step, const RunMeasurement& facts,
                          const Scenario& scenario, double evaluation_seconds);

}  // namespace lockstep

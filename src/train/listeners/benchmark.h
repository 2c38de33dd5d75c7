// Measures how fast a configuration trains (lockstep train --bench-steps): time per step and
// objects per second, as OpenSeq2Seq's benchmark mode prints them, and where the time goes.
#pragma once

#include <string>
#include <vector>

#include "dist/collectives/world.h"
#include "train/folder/run_measurement.h"
#include "train/parts/bucket_clock.h"
#include "train/records/observers.h"

namespace lockstep {

// Collects the steps after the first `skipped`, which warm up. `records` must outlive it.
class BenchmarkObserver : public Observer {
 public:
  BenchmarkObserver(int64_t skipped, std::vector<StepRecord>& records)
      : skipped_(skipped), records_(records) {}
  void on_step(const StepRecord& record) override {
    if (record.step > skipped_) records_.push_back(record);
  }

 private:
  int64_t skipped_;
  std::vector<StepRecord>& records_;
};

// Collects when each step's gradient buckets were complete: one row per step, in seconds since the
// step's computation began. `clock` and `steps` must outlive it.
class BucketObserver : public Observer {
 public:
  BucketObserver(int64_t skipped, const BucketClock& clock,
                 std::vector<std::vector<MeasuredBucket>>& steps)
      : skipped_(skipped), clock_(clock), steps_(steps) {}
  void on_step(const StepRecord& record) override;

 private:
  int64_t skipped_;
  const BucketClock& clock_;
  std::vector<std::vector<MeasuredBucket>>& steps_;
};

// Adds the steps and the medians of their bucket times to a measurement.
void add_steps(const std::vector<StepRecord>& records,
               const std::vector<std::vector<MeasuredBucket>>& buckets, RunMeasurement& out);

// Returns the peak resident memory of this process in bytes (VmHWM).
int64_t peak_resident_bytes();

// Returns the lines to print. REQUIRES at least one record; `peak_bytes` holds every rank's peak,
// `unit` names the targets.
std::string benchmark_report(const std::vector<StepRecord>& records,
                             const std::vector<int64_t>& peak_bytes, const std::string& unit);

}  // namespace lockstep

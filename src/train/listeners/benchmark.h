// How fast a configuration trains (lockstep train --bench-steps): what OpenSeq2Seq's benchmark mode
// prints, time per step and objects per second, and what explains it.
#pragma once

#include <string>
#include <vector>

#include "dist/collectives/world.h"
#include "train/parts/bucket_clock.h"
#include "train/records/observers.h"
#include "train/records/run_measurement.h"

namespace lockstep {

// Collects the steps after the first `skipped`, which warm up. Its records must outlive it.
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

// Besides the records of the steps, when their buckets were complete: a row a step, seconds since
// the begin of its computing. Both outlive it.
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

// Adds steps and the medians of their buckets to a measurement.
void add_steps(const std::vector<StepRecord>& records,
               const std::vector<std::vector<MeasuredBucket>>& buckets, RunMeasurement& out);

// The most memory that this process had in RAM, in bytes (VmHWM).
int64_t peak_resident_bytes();

// The lines to print. `records`: at least one; peak_bytes: of every rank; unit: of the targets.
std::string benchmark_report(const std::vector<StepRecord>& records,
                             const std::vector<int64_t>& peak_bytes, const std::string& unit);

}  // namespace lockstep

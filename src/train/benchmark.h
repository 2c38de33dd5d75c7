// How fast a configuration trains (lockstep train --bench-steps): what OpenSeq2Seq's benchmark mode
// prints, time per step and objects per second, and what explains it.
#pragma once

#include <string>
#include <vector>

#include "dist/world.h"
#include "train/observers.h"

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

// The most memory that this process had in RAM, in bytes (VmHWM).
int64_t peak_resident_bytes();

// The lines to print. `records`: at least one; peak_bytes: of every rank; unit: of the targets.
std::string benchmark_report(const std::vector<StepRecord>& records,
                             const std::vector<int64_t>& peak_bytes, const std::string& unit);

}  // namespace lockstep

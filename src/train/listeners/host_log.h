// Figures of every host into metrics.jsonl and TensorBoard, every `[monitor] every_seconds`. The
// samples come with the heartbeats; a thread gathers them, also while a step takes long, and the
// lines are written by the loop's thread like all others, so that none is torn.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/collectives/world.h"
#include "train/listeners/event_observer.h"
#include "train/listeners/host_means.h"
#include "train/listeners/metrics_log.h"
#include "train/records/observers.h"

namespace lockstep {

class HostLog : public Observer {
 public:
  struct Logs {
    MetricsLog& metrics;
    EventObserver& events;
  };
  // All outlive its last call as an observer; `every_seconds` is above 0.
  HostLog(World& world, Logs logs, double every_seconds);
  ~HostLog() override;
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  void on_start(int64_t first_step, int64_t total_steps) override;
  // Lines that are due are written at each of these.
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const CheckpointRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  struct Due {
    double time = 0;  // seconds since 1970
    int64_t step = 0;
    HostSummary summary;
  };
  void run();
  void look();            // under the mutex
  void close_interval();  // under the mutex
  void write(int64_t step);

  World& world_;
  Logs logs_;
  const double every_seconds_;

  std::mutex mutex_;  // of what follows
  std::condition_variable ended_;
  HostMeans means_;
  std::vector<Due> due_;
  int64_t step_ = 0;  // the newest
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep

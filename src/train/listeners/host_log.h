// Writes figures of every host to metrics.jsonl and TensorBoard, every `[monitor] every_seconds`.
// The samples arrive with the heartbeats. A thread gathers them, also during a long step; the
// training loop's thread writes the lines, as it does all others, so that no line is torn.
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
  // `world` and `logs` must outlive its last call as an observer; `every_seconds` must be above 0.
  HostLog(World& world, Logs logs, double every_seconds);
  ~HostLog() override;
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  void on_start(int64_t first_step, int64_t total_steps) override;
  // These four write the lines that are due.
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
  void look();            // REQUIRES mutex_ to be held
  void close_interval();  // REQUIRES mutex_ to be held
  void write(int64_t step);

  World& world_;
  Logs logs_;
  const double every_seconds_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable ended_;
  HostMeans means_;
  std::vector<Due> due_;
  int64_t step_ = 0;  // the newest
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep

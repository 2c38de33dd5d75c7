// RUN/live.json: what every rank does right now, written by rank 0 about once a second and read by
// `lockstep watch` (docs/run-folder.md#livejson). The last one says how the run ended.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/collectives/world.h"
#include "train/config/run_folder.h"
#include "train/listeners/metrics_log.h"
#include "train/listeners/straggler.h"
#include "train/records/observers.h"

namespace lockstep {

struct LiveOptions {
  std::string unit;    // of targets: "tok"
  double minutes = 0;  // the run's time limit; 0: none
  int threads = 0;     // of each rank; 0: not known
  // Called once a second, by a thread that may wait for the disk; may be empty.
  std::function<void()> look = {};
};

class LiveFile : public Observer {
 public:
  // The file is written by a thread of its own, for the disk may be slow; slow ranks go into `log`
  // by the loop's thread, as all of its lines. `world` outlives it, `log` its last call as an
  // observer.
  LiveFile(World& world, const RunFolder& folder, MetricsLog& log, LiveOptions options);
  ~LiveFile() override;  // without on_end before: the run failed
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const CheckpointRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  void run();
  void look();
  std::string text(const std::string& state, const std::string& reason);
  void write(const std::string& content);
  void log_slow_ranks();

  World& world_;
  RunFolder folder_;
  MetricsLog& log_;
  LiveOptions options_;
  double started_ = 0;  // seconds since 1970
  StragglerWatch stragglers_;
  int64_t disk_free_ = -1;
  bool complained_ = false;

  std::mutex mutex_;  // of what follows
  std::condition_variable ended_;
  StepRecord newest_;
  std::vector<SlowRankRecord> slow_ranks_;  // not yet in the log
  std::string evaluation_, checkpoint_, end_reason_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep

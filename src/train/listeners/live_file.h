// Writes RUN/live.json: what every rank is doing. Rank 0 rewrites it about once a second, `lockstep
// watch` reads it (docs/run-folder.md#livejson), and its last version says how the run ended.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/collectives/world.h"
#include "train/folder/run_folder.h"
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
  // A thread of its own writes the file, since the disk may be slow; the training loop's thread
  // writes slow ranks to `log`, as it does all lines. `world` must outlive this, `log` its last
  // call as an observer.
  LiveFile(World& world, const RunFolder& folder, MetricsLog& log, LiveOptions options);
  ~LiveFile() override;  // says that the run failed unless on_end() came before
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

  std::mutex mutex_;  // guards what follows
  std::condition_variable ended_;
  StepRecord newest_;
  std::vector<SlowRankRecord> slow_ranks_;  // still to be written to the log
  std::string evaluation_, checkpoint_, end_reason_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep

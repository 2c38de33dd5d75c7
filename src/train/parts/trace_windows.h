// Chooses the steps whose spans are recorded: some of each attempt, and more when `lockstep trace
// RUN --live` asks for them during the run. All ranks record the same steps; then rank 0 gathers
// their spans and writes RUN/trace/steps_A-B.json (docs/run-folder.md#spans).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/file.h"
#include "config/fields.h"
#include "dist/collectives/world.h"

namespace lockstep {

struct TraceSection {
  int64_t first = 10;
  int64_t steps = 20;
  void describe(Fields& f);
};

class TraceWindows {
 public:
  static constexpr int64_t kMostSteps = 10000;  // of one request

  // `folder` is RUN/trace, `step` the last step taken. Constructed on every rank with the same
  // arguments. `world` must outlive it.
  TraceWindows(World& world, fs::path folder, const TraceSection& section, int64_t step);

  // Reads trace/request.json. Called on rank 0, by a thread that may wait for the disk.
  void look();
  // Returns how many steps rank 0 wishes to have recorded: 0 for none, and on the other ranks.
  int64_t wish();
  // Call this on all ranks after `step`; `wished` is rank 0's wish, which all ranks know.
  // Collective when a window is over.
  void after_step(int64_t step, int64_t wished);
  // Call this at the end of the run: writes the spans recorded so far. Collective.
  void finish(int64_t step);

 private:
  struct Request {
    std::string id;
    int64_t steps = 0;
  };
  void gather(int64_t step);
  void refuse(const std::string& text, const std::string& why);
  void remove_request(const std::string& id);
  fs::path request_file() const { return folder_ / "request.json"; }

  World& world_;
  fs::path folder_;
  bool on_demand_ = false;  // a request asked for the window that is planned or being recorded
  std::mutex mutex_;        // guards what follows, on rank 0
  std::optional<Request> pending_, asked_, serving_;
  std::string unreadable_, served_;  // a text that may be incomplete; the last id served
};

}  // namespace lockstep

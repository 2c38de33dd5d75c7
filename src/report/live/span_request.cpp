#include "report/live/span_request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "formats/span_file.h"
#include "report/live/live_view.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

constexpr double kOld = 20;    // seconds; live.json is rewritten every second
constexpr double kLeast = 60;  // seconds to wait

// Returns why the run is not training now; empty when it is.
std::string not_running(const ReadJson& live) {
  const std::string state = live.value("state", "");
  if (state != "running") {
    const std::string reason = live.value("reason", "");
    return fmt::format("it {}{}", state.empty() ? "has no state" : state,
                       reason.empty() ? "" : ": " + reason);
  }
  const double age = unix_seconds() - live.value("time", 0.0);
  return age < kOld
             ? ""
             : fmt::format("its live.json is {} old: it was killed or hangs", short_duration(age));
}

ReadJson live_if_running(const fs::path& run) {
  const ReadJson live = read_live(run);
  if (const std::string why = not_running(live); !why.empty()) {
    ConfigError error("{}: does not train now: {}", run.string(), why);
    error.set_advice("lockstep trace " + run.string() + ", for what it recorded");
    throw error;
  }
  return live;
}

using Times = std::map<fs::path, fs::file_time_type>;

Times files_now(const fs::path& run) {
  Times out;
  std::error_code gone;
  for (const fs::path& file : span_files(run)) out[file] = fs::last_write_time(file, gone);
  return out;
}

// Returns a file that is new or was rewritten.
std::optional<fs::path> new_file(const fs::path& run, const Times& before) {
  for (const auto& [file, time] : files_now(run)) {
    const auto old = before.find(file);
    if (old == before.end() || old->second != time) return file;
  }
  return std::nullopt;
}

// Throws for another request that the run has not answered; one from before this attempt does not
// count.
void check_no_other(const fs::path& path, const ReadJson& live) {
  std::error_code absent;
  const auto written = fs::last_write_time(path, absent);
  if (absent) return;
  const double age =
      std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
  if (age > unix_seconds() - live.value("started", 0.0)) return;
  ConfigError error("{}: another request waits since {}", path.string(), short_duration(age));
  error.set_advice("again when it is answered; remove the file if nobody waits for it");
  throw error;
}

// A written request, withdrawn by the destructor unless it was answered.
class Request {
 public:
  Request(const fs::path& run, int64_t steps) : path_(run / "trace" / "request.json") {
    id_ = fmt::format("{}-{:.3f}", ::getpid(), unix_seconds());
    std::error_code failed;
    fs::create_directories(path_.parent_path(), failed);
    if (failed) {
      throw MachineError("{}: cannot be created: {}", path_.parent_path().string(),
                         failed.message());
    }
    write_file(path_, ReadJson{{"steps", steps}, {"id", id_}}.dump() + "\n");
  }
  ~Request() {
    std::error_code ignored;
    if (is_mine()) fs::remove(path_, ignored);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns whether the request is still there: the run removes what it has answered.
  bool is_mine() const {
    try {
      const ReadJson there = ReadJson::parse(read_file(path_), nullptr, false);
      return there.is_object() && there.value("id", "") == id_;
    } catch (const Error&) {  // the file is gone
      return false;
    }
  }

 private:
  fs::path path_;
  std::string id_;
};

}  // namespace

fs::path request_spans(const fs::path& run, const SpanRequest& request) {
  const ReadJson live = live_if_running(run);
  check_no_other(run / "trace" / "request.json", live);
  double step_seconds = 0;
  for (const ReadJson& rank : live.at("ranks")) {
    step_seconds = std::max(step_seconds, rank.value("step_seconds", 0.0));
  }
  const double limit =
      request.limit > 0
          ? request.limit
          : std::max(kLeast, 5 * step_seconds * static_cast<double>(request.steps + 3));
  const Times before = files_now(run);
  const Request written(run, request.steps);
  const double began = unix_seconds();
  std::string over;  // why no answer will come any more
  double over_since = 0;
  while (true) {
    // A file that appears while the request waits belongs to a window of the configuration.
    if (!written.is_mine() || !over.empty()) {
      if (auto file = new_file(run, before)) return *file;
    }
    const double now = unix_seconds();
    const ReadJson state = read_live(run);
    if (over.empty() && !not_running(state).empty()) {
      over = not_running(state);
      over_since = now;
    }
    if (!over.empty() && now > over_since + 2) {  // it may have written spans at its end
      throw MachineError("{}: gave no spans of {} steps: {}", run.string(), request.steps, over);
    }
    if (now > began + limit) {
      throw MachineError("{}: gave no spans of {} steps within {}; it is at step {}", run.string(),
                         request.steps, short_duration(limit), state.value("step", int64_t{0}));
    }
    request.on_progress(fmt::format(
        "waiting for {} steps of {}: it is at step {} ({})", request.steps, run.string(),
        with_commas(state.value("step", int64_t{0})), short_duration(now - began)));
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
}

}  // namespace lockstep

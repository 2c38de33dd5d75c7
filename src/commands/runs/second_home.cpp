#include "commands/runs/second_home.h"

#include <algorithm>
#include <chrono>
#include <future>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"
#include "train/listeners/metrics_log.h"
#include "train/mirror/mirror_reading.h"

namespace lockstep {

namespace {

// Ranks that wait hear of the one that fetches this often: far below comm.timeout_seconds.
constexpr std::chrono::milliseconds kSignOfLife{500};

// The newest step of a folder whose checkpoint has DONE, -1 without.
int64_t newest_step(const RunFolder& folder) {
  int64_t out = -1;
  std::error_code none;
  for (fs::directory_iterator at(folder.checkpoints(), none), end; !none && at != end;
       at.increment(none)) {
    if (fs::exists(at->path() / "DONE", none)) out = std::max(out, checkpoint_step(at->path()));
  }
  return out;
}

void write_news(Mirror& mirror, MetricsLog& log) {
  for (const MirrorNews& news : mirror.take_news()) {
    if (news.error.empty()) {
      log.on_mirror(news.time, {{"step", news.step},
                                {"name", checkpoint_name(news.step)},
                                {"bytes", news.bytes},
                                {"seconds", news.seconds}});
    } else {
      log.on_mirror(news.time, {{"error", news.error}});
    }
  }
}

class MirrorObserver : public Observer {
 public:
  MirrorObserver(Mirror& mirror, const RunFolder& folder)
      : mirror_(mirror), log_(folder.metrics(), "") {}
  void on_step(const StepRecord&) override { write_news(mirror_, log_); }
  void on_checkpoint(const CheckpointRecord& record) override {
    mirror_.add_checkpoint(record.step);
  }
  void on_checkpoint_renewed(int64_t step) override { mirror_.add_checkpoint(step); }

 private:
  Mirror& mirror_;
  MetricsLog log_;
};

// Brings the run's files to a folder that holds no run, or the same one, whose files stay.
void bring_run(const std::string& address, const RunFolder& folder) {
  MirroredRun run(address);
  if (fs::exists(folder.config()) && run_identity(folder) != run.identity()) {
    ConfigError error("{}: holds another run than {}", folder.path().string(), address);
    error.set_advice(fmt::format("run.folder={}-2", folder.path().string()));
    throw error;
  }
  folder.make();
  run.fetch_files(folder.path(), MirroredRun::Files::kAll, true);
  log_info("{}: the run's files are in {}", address, folder.path().string());
}

// Returns whether the address holds this folder's run, or any where the folder has none.
bool holds_run(const std::string& address, const RunFolder& folder) {
  const std::unique_ptr<ObjectStore> store = open_store(parse_store_address(address));
  if (!object_text(*store, "config.toml")) return false;
  return !fs::exists(folder.config()) || mirror_identity(*store) == run_identity(folder);
}

void fetch_newest_checkpoint(const std::string& address, const RunFolder& folder, int64_t than) {
  const auto start = std::chrono::steady_clock::now();
  const auto here = MirroredRun(address).fetch_newest(folder.path(), than);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (!here) return;
  log_info("{} came from {} in {}", here->filename().string(), address,
           short_duration(taken.count()));
}

}  // namespace

void SecondHome::expect(const CheckpointSection& section, const ResumeWish& wish) {
  mirror_address_ = section.mirror;
  if (wish.resumes) brings_ = wish.address.empty() ? section.mirror : wish.address;
}

void SecondHome::check(const RunFolder& folder, const ResumeWish& wish,
                       const LaunchEnvironment& environment) {
  try {
    if (!mirror_address_.empty()) check_mirror(mirror_address_, folder, wish.resumes);
    if (brings_.empty()) return;
    const bool asked = !wish.address.empty();
    if (!asked && !holds_run(brings_, folder)) return;
    bring_run(brings_, folder);
    fetches_ = true;
    must_ = asked && environment.attempt == 0;
    if (environment.attempt > 0) folder.set_job_id(environment.run_id);
  } catch (const Error& error) {
    if (environment.attempt == 0) throw;
    log_warning("{}", error.describe());
  }
}

void SecondHome::open(const CheckpointSection& section, const RunFolder& folder) {
  if (section.mirror.empty()) return;
  mirror_ =
      std::make_unique<Mirror>(MirrorOptions{.address = parse_store_address(section.mirror).text,
                                             .keep = section.mirror_keep,
                                             .wait_seconds = section.mirror_wait_seconds},
                               folder);
}

std::unique_ptr<Observer> SecondHome::observer(const RunFolder& folder) const {
  if (!mirror_) return nullptr;
  return std::make_unique<MirrorObserver>(*mirror_, folder);
}

void SecondHome::finish(const RunFolder& folder, bool hurried) {
  if (!mirror_) return;
  mirror_->finish(hurried);
  MetricsLog log(folder.metrics(), "");
  write_news(*mirror_, log);
}

void bring_checkpoint(World& world, const SecondHome& home, const RunFolder& folder) {
  if (home.brings_.empty()) return;
  int64_t newest = -1;
  for (const std::string& text : world.all_gather_strings(std::to_string(newest_step(folder)))) {
    newest = std::max<int64_t>(newest, std::stoll(text));
  }
  std::future<void> fetching;
  if (world.is_leader() && home.fetches_) {
    fetching = std::async(std::launch::async,
                          [&] { fetch_newest_checkpoint(home.brings_, folder, newest); });
  }
  for (bool busy = true; busy;) {
    std::string state;
    if (fetching.valid()) {
      state = fetching.wait_for(kSignOfLife) == std::future_status::ready ? "ready" : "busy";
    }
    busy = world.all_gather_strings(state).front() == "busy";
  }
  if (!fetching.valid()) return;
  try {
    fetching.get();
  } catch (const Error& error) {
    if (home.must_) throw;  // that ends the run: heartbeats tell the others
    log_warning("{}", error.describe());
  }
}

}  // namespace lockstep

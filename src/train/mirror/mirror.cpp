#include "train/mirror/mirror.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"
#include "train/mirror/mirror_files.h"
#include "train/mirror/mirror_keys.h"

namespace lockstep {

namespace {

constexpr std::chrono::milliseconds kLongestMirrorPause{300'000};

fs::path held_folder(const RunFolder& folder) { return folder.path() / ".mirror"; }

}  // namespace

void check_mirror(const std::string& address, const RunFolder& folder, bool takes_over) {
  const std::unique_ptr<ObjectStore> store = open_store(parse_store_address(address));
  try {
    const std::string probe = ".probe-" + std::to_string(::getpid());
    put_text(*store, probe, "lockstep\n");
    const std::vector<StoredObject> objects = store->list("");
    const bool there = std::any_of(objects.begin(), objects.end(),
                                   [&](const StoredObject& o) { return o.key == probe; });
    if (!there) throw MachineError("{}: a file that was put there is not in its list", address);
    store->remove(probe);
    const std::string other = mirror_identity(*store), mine = run_identity(folder);
    if (other.empty() || other == mine || (takes_over && mine.empty())) return;
    if (list_mirror(*store).complete_steps().empty()) return;
  } catch (Error& error) {
    error.add_context("trying checkpoint.mirror before the run begins");
    throw;
  }
  ConfigError error("checkpoint.mirror: {} holds another run", address);
  error.set_advice(fmt::format("--resume={} to go on with that one, or another address", address));
  throw error;
}

Mirror::Mirror(const MirrorOptions& options, const RunFolder& folder)
    : options_(options), folder_(folder) {
  store_ = open_store(parse_store_address(options_.address),
                      {.cancel = &cancel_, .part_bytes = options_.part_bytes});
  std::error_code ignored;
  fs::remove_all(held_folder(folder_), ignored);
  write_state();
  thread_ = std::thread([this] { work(); });
}

Mirror::~Mirror() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  cancel_ = true;
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::error_code ignored;
  fs::remove_all(held_folder(folder_), ignored);
}

// Returns a folder of links to the checkpoint's files, or the checkpoint where the file system has
// no links.
fs::path Mirror::hold(int64_t step, int64_t generation) {
  const fs::path checkpoint = folder_.checkpoints() / checkpoint_name(step);
  const fs::path held = held_folder(folder_) / fmt::format("{}.{}", step, generation);
  std::error_code failed;
  fs::create_directories(held, failed);
  if (failed) return checkpoint;
  for (fs::directory_iterator file(checkpoint, failed), end; !failed && file != end;
       file.increment(failed)) {
    fs::create_hard_link(file->path(), held / file->path().filename(), failed);
    if (failed) break;
  }
  if (!failed) return held;
  std::error_code ignored;
  fs::remove_all(held, ignored);
  return checkpoint;
}

void Mirror::add_checkpoint(int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t generation = ++generations_;
  const auto before = waiting_.find(step);
  if (before != waiting_.end() && copying_ != step) drop(step, before->second.generation);
  waiting_[step] = {.folder = hold(step, generation), .generation = generation};
  woken_ = true;
  changed_.notify_all();
}

std::vector<MirrorNews> Mirror::take_news() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(news_, {});
}

// REQUIRES mutex_. Forgets what waits, unless it was added again meanwhile, and its links.
void Mirror::drop(int64_t step, int64_t generation) {
  const auto found = waiting_.find(step);
  if (found != waiting_.end() && found->second.generation == generation) waiting_.erase(found);
  std::error_code ignored;
  fs::remove_all(held_folder(folder_) / fmt::format("{}.{}", step, generation), ignored);
}

// Returns the newest of what waits, else the best ones; drops what was overtaken.
std::optional<int64_t> Mirror::choose() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  const auto newest = std::prev(waiting_.end());
  std::error_code ignored;
  if (newest->first >= newest_ && fs::exists(newest->second.folder / "state.json", ignored)) {
    best_ = best_steps_of_state(read_file(newest->second.folder / "state.json"));
  }
  const int64_t last = newest->first;
  while (waiting_.size() > 1) {
    const auto old = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
      return entry.first != last && !best_.contains(entry.first);
    });
    if (old == waiting_.end()) break;
    drop(old->first, old->second.generation);
  }
  copying_ = std::prev(waiting_.end())->first;
  return copying_;
}

// What an earlier process did not copy any more.
void Mirror::catch_up(const MirrorListing& there) {
  std::vector<int64_t> here;
  std::error_code none;
  for (fs::directory_iterator at(folder_.checkpoints(), none), end; !none && at != end;
       at.increment(none)) {
    const int64_t step = checkpoint_step(at->path());
    if (step >= 0 && fs::exists(at->path() / "DONE")) here.push_back(step);
  }
  std::sort(here.rbegin(), here.rend());
  if (!here.empty()) {
    const fs::path state = folder_.checkpoints() / checkpoint_name(here.front()) / "state.json";
    if (fs::exists(state)) best_ = best_steps_of_state(read_file(state));
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    const bool wanted = static_cast<int64_t>(i) < options_.keep || best_.contains(here[i]);
    if (wanted && !there.is_complete(here[i])) add_checkpoint(here[i]);
  }
  const std::vector<int64_t> complete = there.complete_steps();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!complete.empty()) newest_ = std::max(newest_, complete.front());
}

void Mirror::copy_what_waits() {
  if (!claimed_) claim_mirror(*store_, options_.address, folder_);
  claimed_ = true;
  if (!caught_up_) catch_up(list_mirror(*store_));
  bool hurried = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hurried = hurried_;
  }
  if (!hurried) copy_files();
  caught_up_ = true;
  while (const std::optional<int64_t> step = choose()) {
    Waiting waiting;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting = waiting_.at(*step);
    }
    copy_checkpoint(*step, waiting);
    remove_old(*step);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  copying_.reset();
}

void Mirror::copy_checkpoint(int64_t step, const Waiting& waiting) {
  const Clock::time_point start = Clock::now();
  if (sent_step_ != std::pair(step, waiting.generation)) sent_.clear();
  sent_step_ = {step, waiting.generation};
  int64_t bytes = 0;
  try {
    bytes = put_checkpoint(*store_, step, waiting.folder, sent_);
  } catch (const Error&) {
    // Without links the run may have removed it: there is nothing to copy any more.
    if (fs::exists(waiting.folder / "DONE")) throw;
    log_info("mirror: {} was removed before it was copied", checkpoint_name(step));
    bytes = -1;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  copying_.reset();
  drop(step, waiting.generation);
  if (bytes < 0) return;
  newest_ = std::max(newest_, step);
  const double seconds = seconds_since(start);
  news_.push_back({.time = unix_seconds(), .step = step, .bytes = bytes, .seconds = seconds});
  problem_.clear();
  log_info("mirror: {} is in {} ({} in {})", checkpoint_name(step), options_.address,
           short_bytes(static_cast<double>(bytes)), short_duration(seconds));
  write_state();
}

// Of the checkpoints there only the newest ones and the best stay, and of incomplete ones none that
// is older than the newest.
void Mirror::remove_old(int64_t newest) {
  const MirrorListing there = list_mirror(*store_);
  int64_t kept = 0;
  for (auto at = there.checkpoints.rbegin(); at != there.checkpoints.rend(); ++at) {
    const auto& [step, objects] = *at;
    const bool complete = there.is_complete(step);
    const bool stays = complete ? kept++ < options_.keep || best_.contains(step) : step >= newest;
    if (stays) continue;
    // DONE goes first, so that a half-removed checkpoint does not look whole.
    if (complete) store_->remove(mirrored_checkpoint(step) + "/DONE");
    for (const StoredObject& object : objects) {
      if (!object.key.ends_with("/DONE")) store_->remove(object.key);
    }
  }
}

void Mirror::copy_files() {
  bool last = !caught_up_;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    last |= finishing_;
  }
  for (const fs::path& file : mirrored_files(folder_)) {
    std::error_code gone;
    const fs::path path = folder_.path() / file;
    const std::pair now{fs::file_size(path, gone), fs::last_write_time(path, gone)};
    if (gone || copied_[file] == now) continue;
    if (!last && now.first > kLargeFile) continue;
    if (put_run_file(*store_, folder_, file, held_folder(folder_))) copied_[file] = now;
  }
}

void Mirror::work() {
  std::chrono::milliseconds pause = options_.first_pause;
  std::unique_lock<std::mutex> lock(mutex_);
  Clock::time_point again{};  // when to try again after a failure
  bool failed = false;
  while (!stop_) {
    if (failed && !woken_) {
      changed_.wait_until(lock, again, [&] { return stop_ || woken_; });
    } else {
      changed_.wait(lock, [&] { return stop_ || woken_; });
    }
    if (stop_) return;
    // A new checkpoint does not shorten the pause after a failure; the run's end does.
    while (failed && !finishing_ && !stop_ && Clock::now() < again)
      changed_.wait_until(lock, again);
    if (stop_) return;
    woken_ = false;
    const bool finishing = finishing_;
    lock.unlock();
    std::string problem;
    try {
      copy_what_waits();
      if (finishing) copy_files();
    } catch (const Error& error) {
      problem = error.describe();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock.lock();
    failed = !problem.empty();
    if (stop_) return;  // finish() has said what became of it, or nobody waits
    if (failed) {
      note_failure(problem);
      if (finishing != finishing_) pause = options_.first_pause;
      again = Clock::now() + pause;
      pause = std::min(pause * 2, kLongestMirrorPause);
      continue;
    }
    pause = options_.first_pause;
    if (!problem_.empty()) log_info("mirror: {} can be reached again", options_.address);
    problem_.clear();
    if (finishing && waiting_.empty()) done_ = true;
    write_state();
    changed_.notify_all();
    if (done_) return;
  }
}

// REQUIRES mutex_.
void Mirror::note_failure(const std::string& problem) {
  copying_.reset();
  if (problem != problem_) log_warning("mirror: not copied, will be tried again: {}", problem);
  problem_ = problem;
  news_.push_back({.time = unix_seconds(), .error = problem});
  write_state();
}

// REQUIRES mutex_, or that no thread runs yet. RUN/mirror.json: for who waits for the copy.
void Mirror::write_state() {
  const nlohmann::ordered_json state = {{"address", options_.address},
                                        {"newest", newest_ < 0 ? "" : checkpoint_name(newest_)},
                                        {"complete", done_},
                                        {"error", problem_}};
  try {
    write_file(folder_.path() / "mirror.json", state.dump(1) + "\n");
  } catch (const Error& error) {
    log_warning("mirror.json: {}", error.what());
  }
}

bool Mirror::finish(bool hurried) {
  std::unique_lock<std::mutex> lock(mutex_);
  finishing_ = woken_ = true;
  hurried_ = hurried;
  changed_.notify_all();
  const Clock::time_point start = Clock::now();
  const auto limit = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.wait_seconds));
  constexpr std::chrono::seconds kUnsaid{2};
  if (!changed_.wait_for(lock, std::min<Clock::duration>(limit, kUnsaid), [&] { return done_; })) {
    log_info("mirror: waiting up to {} until all is in {}", short_duration(options_.wait_seconds),
             options_.address);
    changed_.wait_until(lock, start + limit, [&] { return done_; });
  }
  const std::string newest = newest_ < 0 ? "no checkpoint" : checkpoint_name(newest_);
  if (done_) {
    log_info("mirror: {} has everything, as far as {}", options_.address, newest);
  } else {
    log_warning("mirror: not everything got to {} within {}: it has {}{}", options_.address,
                short_duration(options_.wait_seconds), newest,
                problem_.empty() ? "" : "; " + problem_);
    if (problem_.empty()) problem_ = "not everything was copied in time";
    write_state();
  }
  const bool all = done_;
  stop_ = true;
  cancel_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();
  return all;
}

}  // namespace lockstep

// Copies a run to its second home beside the training
// (docs/training.md#a-second-home-for-checkpoints). A thread of its own copies, retries and tidies
// up; a step never waits for it, and what fails there is a warning. It belongs to rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/store/object_store.h"
#include "train/folder/run_folder.h"
#include "train/mirror/mirror_keys.h"

namespace lockstep {

struct MirrorOptions {
  std::string address;
  int64_t keep = 2;           // newest checkpoints there
  double wait_seconds = 600;  // that finish() waits
  int64_t part_bytes = StoreOptions{}.part_bytes;
  std::chrono::milliseconds first_pause{1000};  // after a failure; doubles up to five minutes
};

// Throws ConfigError or MachineError when a run cannot be copied there: no rights, no bucket, no
// way, or another run than the folder's lies there. Writes a file there and removes it again. The
// folder need not exist yet. With `takes_over`, a run there is fine if the folder holds none.
void check_mirror(const std::string& address, const RunFolder& folder, bool takes_over);

// What the mirror did, for metrics.jsonl.
struct MirrorNews {
  double time = 0;  // seconds since 1970
  int64_t step = -1, bytes = 0;
  double seconds = 0;
  std::string error;  // empty: the checkpoint of `step` is there
};

class Mirror {
 public:
  // The folder exists. Begins to copy what it holds and the mirror does not. Throws ConfigError for
  // an address that cannot be opened.
  Mirror(const MirrorOptions& options, const RunFolder& folder);
  ~Mirror();  // gives up what is under way
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Takes the checkpoint of this step, which is complete, among those to copy. Holds its files by
  // hard links, so that the run may remove them; returns at once.
  void add_checkpoint(int64_t step);
  std::vector<MirrorNews> take_news();

  // Copies what is left, waits for that at most `wait_seconds` and says what became of it. With
  // `hurried` the last checkpoint comes before all other files: the process may be killed soon.
  // Returns whether everything is there. Nothing may be added afterwards.
  bool finish(bool hurried);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    fs::path folder;  // of links, or the checkpoint itself
    int64_t generation = 0;
  };

  void work();
  void copy_what_waits();
  std::optional<int64_t> choose();
  void copy_checkpoint(int64_t step, const Waiting& waiting);
  void remove_old(int64_t newest);
  void catch_up(const MirrorListing& there);
  void copy_files();
  fs::path hold(int64_t step, int64_t generation);
  void drop(int64_t step, int64_t generation);
  void note_failure(const std::string& problem);
  void write_state();

  MirrorOptions options_;
  RunFolder folder_;
  std::atomic<bool> cancel_{false};
  std::unique_ptr<ObjectStore> store_;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<int64_t, Waiting> waiting_;
  std::optional<int64_t> copying_;
  int64_t generations_ = 0, newest_ = -1;
  std::string problem_;
  std::vector<MirrorNews> news_;
  bool woken_ = true, finishing_ = false, hurried_ = false, done_ = false, stop_ = false;

  // Of the thread alone.
  bool claimed_ = false, caught_up_ = false;
  std::set<int64_t> best_;
  std::pair<int64_t, int64_t> sent_step_;    // the checkpoint that is copied, its generation
  std::map<std::string, std::string> sent_;  // its files that are there: SHA-256
  std::map<fs::path, std::pair<uintmax_t, fs::file_time_type>> copied_;  // files of the run

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep

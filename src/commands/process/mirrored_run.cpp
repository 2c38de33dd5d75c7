#include "commands/process/mirrored_run.h"

#include <algorithm>
#include <cstdlib>

#include "base/digest.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"
#include "train/mirror/mirror_reading.h"

namespace lockstep {

namespace {

fs::path folder_in_cache(const std::string& address) {
  const char* set = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path cache = set != nullptr && *set != '\0'     ? fs::path(set)
                   : home != nullptr && *home != '\0' ? fs::path(home) / ".cache"
                                                      : fs::temp_directory_path();
  const std::string hash = sha256_hex(std::as_bytes(std::span(address))).substr(0, 12);
  return cache / "lockstep" / "runs" / (fs::path(address).filename().string() + "-" + hash);
}

// Removes checkpoints of the cache that the mirror has no more.
void tidy_cache(const fs::path& folder, const std::vector<int64_t>& there) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints", none)) {
    const int64_t step = checkpoint_step(entry.path());
    if (step < 0 || std::find(there.begin(), there.end(), step) != there.end()) continue;
    fs::remove_all(entry.path(), none);
  }
}

}  // namespace

std::string local_run(const std::string& name, SavedRunOptions& options) {
  if (!is_store_address(name)) return name;
  MirroredRun run(name);
  const fs::path folder = folder_in_cache(run.address());
  fs::create_directories(folder);
  FileLock lock(folder / ".fetching");
  lock.lock();
  run.fetch_files(folder, MirroredRun::Files::kForUse, false);
  tidy_cache(folder, run.steps());
  options.checkpoint = run.fetch_chosen(folder, options.checkpoint).filename().string();
  log_info("{}: {} is in {}", name, options.checkpoint, folder.string());
  return folder.string();
}

}  // namespace lockstep

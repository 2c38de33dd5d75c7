#include "commands/launch/push_turn.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "base/known_hashes.h"

namespace lockstep {

PushTurn::PushTurn(const std::vector<Host>& hosts, const std::string& folder) {
  const fs::path cache = KnownHashes::default_file().parent_path();
  if (cache.empty()) return;
  std::set<std::string> names;  // in one order for all, so that no two wait for each other
  for (const Host& host : hosts) {
    const std::string place = host.ssh_name + " " + host.address + " " + folder;
    names.insert(sha256_hex(std::as_bytes(std::span(place))).substr(0, 16));
  }
  try {
    fs::create_directories(cache / "pushes");
    for (const std::string& name : names) {
      FileLock lock(cache / "pushes" / name);
      if (!lock.try_lock()) {
        fmt::print(stderr,
                   "lockstep launch: waits for another launch that brings its files to {}\n",
                   folder);
        lock.lock();
      }
      locks_.push_back(std::move(lock));
    }
  } catch (const fs::filesystem_error&) {  // no cache can be written: nothing is waited for
  } catch (const MachineError&) {          // or its file system has no locks
  }
}

void PushTurn::end() {
  for (FileLock& lock : locks_) lock.unlock();
  locks_.clear();
}

}  // namespace lockstep

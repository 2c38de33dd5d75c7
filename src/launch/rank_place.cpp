// What one rank is told by its environment, and which cores are its own.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "dist/launch_environment.h"
#include "launch/local_launcher.h"

namespace lockstep {

std::vector<std::string> environment_of_rank(const RankPlace& place) {
  const std::vector<std::string>& cleared = clear_list();
  std::vector<std::string> out;
  bool threads_given = false;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (std::find(cleared.begin(), cleared.end(), name) != cleared.end()) continue;
    threads_given |= name == "OMP_NUM_THREADS";
    out.emplace_back(text);
  }
  auto set = [&](const char* name, const auto& value) {
    out.push_back(fmt::format("{}={}", name, value));
  };
  set("LOCKSTEP_RANK", place.rank);
  set("LOCKSTEP_SIZE", place.size);
  set("LOCKSTEP_LOCAL_RANK", place.rank);
  set("LOCKSTEP_LOCAL_SIZE", place.size);
  set("LOCKSTEP_MASTER_ADDRESS", "127.0.0.1");
  set("LOCKSTEP_MASTER_PORT", place.master_port);
  set("LOCKSTEP_RUN_ID", place.run_id);
  set("LOCKSTEP_ATTEMPT", 0);
  if (place.store_descriptor >= 0) set("LOCKSTEP_STORE_FD", place.store_descriptor);
  if (!threads_given) set("OMP_NUM_THREADS", place.threads);
  return out;
}

std::vector<int> usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::vector<int> out;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) {
    for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i) out.push_back(static_cast<int>(i));
    return out;
  }
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &cores)) out.push_back(i);
  }
  return out;
}

}  // namespace lockstep

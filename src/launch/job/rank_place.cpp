// Builds the environment that tells one rank its place.
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "dist/rank/launch_environment.h"
#include "launch/job/rank_set.h"

namespace lockstep {

namespace {

// NAME=value in order of priority: the first of a name stays.
class Environment {
 public:
  void add(std::string entry) {
    std::string_view text = entry;
    if (!has(text.substr(0, text.find('=')))) entries_.push_back(std::move(entry));
  }
  template <typename Value>
  void add(const char* name, const Value& value) {
    add(fmt::format("{}={}", name, value));
  }
  bool has(std::string_view name) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const std::string& entry) {
      return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
    });
  }
  std::vector<std::string> take() { return std::move(entries_); }

 private:
  std::vector<std::string> entries_;
};

// Tells Gloo and NCCL of this rank which interface to use, unless the user did.
void add_interface(const StartOrder& order, Environment& out) {
  if (order.address.empty()) return;
  if (!out.has("GLOO_SOCKET_IFNAME")) out.add("LOCKSTEP_ADDRESS", order.address);
  if (order.interface.empty()) return;
  out.add("GLOO_SOCKET_IFNAME", order.interface);
  out.add("NCCL_SOCKET_IFNAME", "=" + order.interface);  // "=": exact, not a prefix
}

}  // namespace

std::vector<std::string> environment_of_rank(const StartOrder& order, int local_rank, int threads,
                                             int store_descriptor) {
  Environment out;
  out.add("LOCKSTEP_RANK", order.first_rank + local_rank);
  out.add("LOCKSTEP_SIZE", order.size);
  out.add("LOCKSTEP_LOCAL_RANK", local_rank);
  out.add("LOCKSTEP_LOCAL_SIZE", order.ranks);
  out.add("LOCKSTEP_MASTER_ADDRESS", order.master_address);
  out.add("LOCKSTEP_MASTER_PORT", order.master_port);
  out.add("LOCKSTEP_RUN_ID", order.run_id);
  out.add("LOCKSTEP_ATTEMPT", order.attempt);
  if (!order.secret.empty()) out.add("LOCKSTEP_SECRET", order.secret);
  if (!order.host.empty()) out.add("LOCKSTEP_HOST", order.host);
  if (store_descriptor >= 0) out.add("LOCKSTEP_STORE_FD", store_descriptor);
  for (const std::string& entry : order.environment) out.add(entry);
  const std::vector<std::string>& cleared = clear_list();
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (std::find(cleared.begin(), cleared.end(), name) != cleared.end()) continue;
    out.add(std::string(text));
  }
  add_interface(order, out);
  out.add("OMP_NUM_THREADS", threads);
  return out.take();
}

}  // namespace lockstep

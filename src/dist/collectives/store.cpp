#include "dist/collectives/store.h"

#include <fmt/format.h>

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/text.h"
#include "dist/liveness/peer_error.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

std::string arrival_key(int rank) { return fmt::format("arrived/{}", rank); }

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const LaunchEnvironment& environment,
                                           std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.timeout = timeout;
  options.waitWorkers = false;  // wait_for_all_ranks can say who is missing
  options.port = static_cast<uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !environment.store_is_served;
  if (options.isServer) {
    int socket = environment.store_descriptor >= 0
                     ? environment.store_descriptor
                     : listen_on(environment.master_address, environment.master_port);
    options.port = static_cast<uint16_t>(port_of(socket));
    options.masterListenFd = socket;
  }
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
    std::string prefix = fmt::format("lockstep/{}/{}", environment.run_id, environment.attempt);
    return c10::make_intrusive<c10d::PrefixStore>(prefix, store);
  } catch (const std::exception& exception) {
    MachineError error("rank {} cannot reach rank 0 at {}:{}", environment.rank,
                       environment.master_address, options.port);
    error.set_cause(plain_text_of(exception));
    error.set_advice(
        "see whether rank 0 started, and whether a firewall lets this port through between the "
        "machines");
    throw error;
  }
}

void wait_for_all_ranks(c10d::Store& store, const LaunchEnvironment& environment,
                        std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < environment.size; ++rank) keys.push_back(arrival_key(rank));
  std::string cause;
  try {
    store.set(arrival_key(environment.rank), std::vector<uint8_t>{1});
    store.wait(keys, timeout);
    return;
  } catch (const std::exception& exception) {
    cause = plain_text_of(exception);
  }
  std::vector<std::string> missing;
  try {
    for (int rank = 0; rank < environment.size; ++rank) {
      if (!store.check({arrival_key(rank)})) missing.push_back(std::to_string(rank));
    }
  } catch (const std::exception& exception) {  // the store itself is gone, so rank 0 is
    missing = {"0"};
  }
  MachineError error("not all of {} ranks appeared: missing {} (seen by rank {})", environment.size,
                     missing.empty() ? "none any more" : join(missing, ", "), environment.rank);
  error.set_cause(cause);
  error.set_advice("look at the log of a missing rank; start as many ranks as the world size says");
  throw error;
}

}  // namespace lockstep

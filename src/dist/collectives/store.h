// Opens the key-value store for the ranks' rendezvous, which rank 0 serves.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "dist/rank/launch_environment.h"

namespace lockstep {

// Opens the store on rank 0 and connects to it from every other rank. Keys are prefixed by run and
// attempt, so that a restart never reads addresses of ranks that are gone. Rank 0 listens on the
// master address only: on environment.store_descriptor if given (bound by the launcher, so that no
// other program can take the port in between; the store closes it), else on master_port. It serves
// a store of our own (dist/store/store_server.h), which hears only who knows environment.secret:
// c10d's TCPStore answers everyone. With store_is_served the store is torchrun's TCPStore, and all
// ranks, rank 0 included, connect. Throws MachineError.
c10::intrusive_ptr<c10d::Store> open_store(const LaunchEnvironment& environment,
                                           std::chrono::milliseconds timeout);

// Blocks until every rank has called it. Throws MachineError that names the missing ranks.
void wait_for_all_ranks(c10d::Store& store, const LaunchEnvironment& environment,
                        std::chrono::milliseconds timeout);

}  // namespace lockstep

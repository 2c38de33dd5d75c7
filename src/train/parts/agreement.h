// Checks before the first step that all ranks agree, and makes a failure of one rank a failure of
// all.
#pragma once

#include <functional>
#include <string>

#include "dist/collectives/world.h"

namespace lockstep {

// Returns "rank 2 on b", with the launcher's name of the host, else the host's own.
std::string rank_and_host(const World& world);

// Runs `work` on this rank. When it throws an Error on any rank, all ranks throw, so that none
// waits for another in vain: the failed ones throw their own, the others one with the same exit
// code that names the first failed rank. Collective.
void together(World& world, const std::function<void()>& work);

// Throws ConfigError on every rank when `text` (lines such as `key = value`) differs from rank 0's
// anywhere, naming the first rank that differs, its host, and the first line that does. Collective.
void check_same_text(World& world, const std::string& what, const std::string& text);

// With run.device = "auto": throws MachineError on every rank when some compute on GPUs and others,
// whose machines have none that works, on CPUs. Collective.
void check_same_device(World& world, torch::Device device);

// With training.reproducible = "any-ranks": throws ConfigError where sums of parts would not be
// those of one rank. Neighbours must be added on their machine first, by kernels of the CPU, with
// equal threads. Collective.
void check_any_ranks(World& world, torch::Device device);

}  // namespace lockstep

// What all ranks must have alike before the first step, and failures that all ranks share.
#pragma once

#include <functional>
#include <string>

#include "dist/collectives/world.h"

namespace lockstep {

// "rank 2 on b": the launcher's name of the host, else its own.
std::string rank_and_host(const World& world);

// Collective. Runs `work` on this rank; when it throws an Error on any rank all ranks throw, so
// that none waits for another in vain: the failed ones their own, the others one of the same exit
// code that names the first failed rank.
void together(World& world, const std::function<void()>& work);

// Collective. ConfigError on every rank when `text` (lines, as `key = value`) is not that of rank 0
// everywhere: names the first rank that differs, its host, and the first line that does.
void check_same_text(World& world, const std::string& what, const std::string& text);

}  // namespace lockstep

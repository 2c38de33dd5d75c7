// How much a better network, fewer bytes or accumulation could give at most, and for whom ranks
// waited. Pure functions; what a step should send is in dist/account/exchange_model.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// A step is C + W, of which W waits for the exchange. Bounds, because how much of the exchange is
// hidden behind computing is not known: see `gain_low` and `gain_high` of each.
struct WhatIf {
  const char* name;
  const char* reason;
  double low = 1, high = 1;  // times as many targets a second
};
// REQUIRES: 0 <= wait < step.
// - a network of no cost: the wait goes, no more.
// - half the bytes (bf16): of an exchange of E >= W seconds E/2 >= W/2 go, at most all of W.
// - twice the work for one exchange (accumulation): 2C + W at most; overlap of the last pass is as
//   before, so that is both bounds.
std::vector<WhatIf> what_if(double step_seconds, double wait_seconds);

// The same where hidden communication is known: of a step, `exposed` seconds of the exchange are
// waited for and `hidden` lie behind computing. With 1/k of the bytes, or k times the bandwidth, at
// least max(0, (exposed + hidden)/k - hidden) is left to be waited for (as much is hidden as now),
// at most exposed/k (what is waited for are the last buckets). `halved`: 16 bits are on the wire
// already. REQUIRES: 0 <= exposed < step.
std::vector<WhatIf> what_if_measured(double step_seconds, double exposed, double hidden,
                                     bool halved);

// How ranks spent the newest steps: the wait that all have is the exchange's; what the others wait
// longer, they wait for the slowest.
struct RankLoad {
  int rank = 0;
  double step = 0, compute = 0, wait = 0, data = 0;  // seconds
};
struct WaitSplit {
  double exchange = 0;    // shortest wait of any rank: even the last one waits for the network
  double for_others = 0;  // mean wait beyond it
  double of_first = 0;  // wait of the first of `ranks`: rank 0, whose waits the whole run recorded
  int slowest = -1;     // rank with the shortest wait
  double factor = 1;    // its compute + data over the median of the other ranks'
};
std::optional<WaitSplit> split_wait(const std::vector<RankLoad>& ranks);  // two ranks or more

}  // namespace lockstep

// How much a better network, fewer bytes or accumulation could give at most. What a step should
// send is in dist/account/exchange_model.h.
#pragma once

#include <vector>

namespace lockstep {

// What another choice would give: times as many targets a second, between two bounds.
struct WhatIf {
  const char* name;
  const char* reason;
  double low = 1, high = 1;
};
// Of a step, `exposed` seconds of the exchange are waited for and `hidden` lie behind computing.
// With 1/k of the bytes, or k times the bandwidth, at least max(0, (exposed + hidden)/k - hidden)
// is left to be waited for (as much is hidden as now), at most exposed/k (what is waited for are
// the last buckets). `halved`: 16 bits are on the wire already. REQUIRES: 0 <= exposed < step.
std::vector<WhatIf> what_if(double step_seconds, double exposed, double hidden, bool halved);

}  // namespace lockstep

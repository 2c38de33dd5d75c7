// Bounds the gain from a better network, fewer bytes or accumulation. What a step should send is in
// dist/account/exchange_model.h.
#pragma once

#include <vector>

namespace lockstep {

// The factor by which another choice would increase targets per second, between two bounds.
struct WhatIf {
  const char* name;
  const char* reason;
  double low = 1, high = 1;
};
// Of the exchange in a step, `exposed` seconds are waited for and `hidden` seconds overlap
// computing. With 1/k of the bytes, or k times the bandwidth, the remaining wait is at least max(0,
// (exposed + hidden)/k - hidden), if as much is hidden as now, and at most exposed/k, if the last
// buckets are waited for. `halved`: 16 bits are on the wire already. REQUIRES 0 <= exposed < step.
std::vector<WhatIf> what_if(double step_seconds, double exposed, double hidden, bool halved);

}  // namespace lockstep

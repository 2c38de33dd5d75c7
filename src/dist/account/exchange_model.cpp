#include "dist/account/exchange_model.h"

namespace lockstep {

// Two hosts send each other the whole array; more hosts first add up slices and then exchange them.
double exchange_delays(int hosts) { return hosts < 2 ? 0 : hosts == 2 ? 1 : 2; }

double exchange_bytes(double bytes, int hosts) {
  return hosts < 2 ? 0 : 2.0 * (hosts - 1) / hosts * bytes;
}

double exchange_seconds(double bytes, int hosts, const Link& link) {
  if (hosts < 2) return 0;
  return exchange_delays(hosts) * link.latency_seconds +
         exchange_bytes(bytes, hosts) / link.bytes_per_second;
}

}  // namespace lockstep

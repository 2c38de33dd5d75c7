// Models the time that hosts take to sum an array (all-reduce), for plans before a run and for the
// report after it.
//
// A sum among h hosts moves 2 (h - 1) / h of its bytes each way, which is the minimum (Patarasuk
// and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", section
// 3), and takes one network delay between two hosts, two delays among more
// (dist/collectives/mesh.h). So t(S) = delays * latency + 2 (h - 1) / h * S / bandwidth. The
// headers of TCP and Ethernet add 3 to 6 per cent, unless latency and bandwidth were fitted to
// measured sums.
#pragma once

namespace lockstep {

struct Link {                   // from every host to each other host
  double latency_seconds = 0;   // of one message
  double bytes_per_second = 0;  // each way
  // Processor time that a host spends on each byte of gradients exchanged; it lengthens the
  // backward pass that runs meanwhile.
  double cpu_seconds_per_byte = 0;
};

// Returns the successive network delays in a sum; 0 for one host.
double exchange_delays(int hosts);
// Returns the bytes that a host sends, and receives, in a sum of `bytes` bytes; 0 for one host.
double exchange_bytes(double bytes, int hosts);
// Returns the time of one sum; 0 for one host.
double exchange_seconds(double bytes, int hosts, const Link& link);

}  // namespace lockstep

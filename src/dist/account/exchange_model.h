// How long hosts take to sum an array, by arithmetic: for plans before a run and for the report after
// it.
//
// A sum among h hosts moves 2 (h - 1) / h of its bytes each way, which is the least that can be
// (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// section 3), and takes one delay of the network between two hosts, two among more
// (dist/collectives/mesh.h). So t(S) = delays * latency + 2 (h - 1) / h * S / bandwidth. Headers of
// TCP and Ethernet (3 to 6 per cent) come on top, unless latency and bandwidth were fitted on sums.
#pragma once

namespace lockstep {

struct Link {                   // of every host to the others
  double latency_seconds = 0;   // of one message
  double bytes_per_second = 0;  // each way
  // Processor time that a host spends on a byte of gradients exchanged: it lengthens the backward
  // pass that it runs beside.
  double cpu_seconds_per_byte = 0;
};

// Delays that follow one another in a sum; 0 for one host.
double exchange_delays(int hosts);
// What a host sends, and receives, of a sum of so many bytes; 0 for one host.
double exchange_bytes(double bytes, int hosts);
// Of one sum; 0 for one host.
double exchange_seconds(double bytes, int hosts, const Link& link);

}  // namespace lockstep

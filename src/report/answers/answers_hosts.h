// Evaluates the samples of every host (report/run/host_history.h) for questions 4 and 5 and for
// energy: each function adds its part to an answer, or says that it was not measured.
// docs/report.md#reportjson has the limits of the findings.
#pragma once

#include <string>
#include <vector>

#include "report/answers/answers.h"

namespace lockstep {

// Question 4: adds cores, memory and GPUs over the whole run (answers_hosts.cpp). `computing` is
// the share of a step that rank 0 computes; idle cores are no finding where something else is the
// cause.
void add_processor_use(const Run& run, double computing, Answer& out, Findings& findings);
// Question 5: adds interfaces against their links, drops, retransmits (answers_links.cpp).
void add_link_use(const Run& run, const ReportOptions& options, Answer& out, Findings& findings);
// Adds energy by the counters of GPUs and processor packages (answers_links.cpp). Returns false,
// and adds nothing, when no host has such counters.
bool add_measured_energy(const Run& run, Answer& out);

// A figure over the time of the run (host_figure.cpp).
struct HostLine {
  std::string name;
  const HostSeries* host;
  HostSeries::Value value;
};
// With more than 8 lines, returns the lowest, the mean and the highest of all.
std::vector<PlotSeries> series_over_time(const Run& run, const std::vector<HostLine>& lines);

}  // namespace lockstep

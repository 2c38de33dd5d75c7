// What per-step accounting of every rank (report/run/run_times.h) adds to the answers 1, 4, 5, 10
// and
// 11. All take a run that has times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/answers/analysis_traffic.h"
#include "report/answers/answers.h"

namespace lockstep {

// Question 1: rank 0's phases as parts of the time.
MeasuredSteps measured_steps(const RunTimes& times);
// ... and communication that computing hid, beside the bars.
void add_hidden_bar(const RunTimes& times, Answer& out);

// Question 4: phases of every rank, and how busy each was over the run.
void add_rank_phases(const Run& run, Answer& out);
// ... and the rank that is slower than the others; the text of the finding, if there is one.
std::optional<std::string> slow_rank_text(const Run& run, Answer& out);

// Question 5: exposed and hidden communication, and what the link was used for meanwhile.
// `link`: bytes a second of a host, 0 for not known.
void add_exchange(const Run& run, double link, Answer& out);
// What other networks and fewer bytes would give.
std::vector<WhatIf> measured_choices(const Run& run);
// A drawing of some steps of all ranks, where the run has their spans.
void add_timeline(const Run& run, Answer& out);

// Question 10: the mean step in phases.
std::string mean_step_text(const RunTimes& times);

// Question 11: bytes that a rank sends and receives in a step, as it counted them.
void add_counted_bytes(const Run& run, Answer& out);
// Of a host, through the network; nothing where ranks share hosts, as their bytes are of both
// paths.
std::optional<double> counted_host_bytes(const Run& run);

}  // namespace lockstep

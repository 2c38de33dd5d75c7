// Adds what the per-step accounting of every rank (report/run/run_times.h) says to answers 1, 4, 5,
// 10 and 11. All functions REQUIRE a run that has times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/answers/analysis_traffic.h"
#include "report/answers/answers.h"
#include "report/answers/known_link.h"

namespace lockstep {

// Question 1: returns rank 0's phases as parts of the time.
MeasuredSteps measured_steps(const RunTimes& times);
// Question 1: adds communication hidden by computing, beside the bars.
void add_hidden_bar(const RunTimes& times, Answer& out);

// Question 4: adds phases of every rank, and how busy each was over the run.
void add_rank_phases(const Run& run, Answer& out);
// Question 4: adds the rank that is slower than the others; returns the finding's text, if any.
std::optional<std::string> slow_rank_text(const Run& run, Answer& out);

// Question 5: adds exposed and hidden communication, and what the link was used for meanwhile.
// For a run of several hosts it also says what the link is, or that it is not known.
void add_exchange(const Run& run, const KnownLink& link, Answer& out);
// Returns what other networks and fewer bytes would give.
std::vector<WhatIf> measured_choices(const Run& run);
// Adds a drawing of some steps of all ranks, where the run has their spans.
void add_timeline(const Run& run, Answer& out);

// Question 10: returns the mean step in phases.
std::string mean_step_text(const RunTimes& times);

// Question 11: adds the bytes that a rank sends and receives in a step, as it counted them.
void add_counted_bytes(const Run& run, Answer& out);
// Returns a host's bytes through the network; nothing where ranks share hosts, as their counts then
// include shared memory.
std::optional<double> counted_host_bytes(const Run& run);

}  // namespace lockstep

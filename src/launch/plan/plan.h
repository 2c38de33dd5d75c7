// Plans a run: predicts from measurements what it will take, and what other choices would change. A
// plan is kept as plan.json (docs/before-a-run.md#planjson), which the run compares with what it
// measures (train/listeners/plan_check.h).
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launch/plan/plan_model.h"

namespace lockstep {

struct PlanInputs {
  std::string config;              // path, for messages
  std::vector<std::string> words;  // key=value
  std::vector<std::string> hosts;  // names; with one host, nothing crosses a network
  int ranks_per_host = 1, cores_per_host = 1;
  RunMeasurement facts;  // with steps split as among all ranks
  ComputeModel compute;
  std::string compute_source;  // "11 steps measured on this machine"
  Link link;
  std::string link_source;        // "fitted on sums of 64 kB and 4 MB among 2 hosts", "given"
  bool link_at_least = false;     // delays hid the transfer: the bandwidth is the least it can be
  int64_t evaluated_items = 0;    // per evaluation
  double evaluation_seconds = 0;  // per evaluation on one host; below 0: from the measurement
  double price_per_hour = 0;      // per host; 0: not given

  // All-reduces under way at a time: by the ranks of a host together, in turn.
  int lanes() const { return ranks_per_host > 1 ? 1 : facts.streams; }
};

struct PlannedChoice {
  Scenario scenario;
  StepPrediction step;
  RunPrediction run;
  double cost = 0;  // price * hosts * hours

  // For the whole run, so that runs that training.minutes ends can be compared as well.
  double seconds_per_target() const {
    return run.seconds() / (static_cast<double>(std::max<int64_t>(1, run.steps)) * step.targets);
  }
};

struct Plan {
  PlanInputs inputs;
  PlannedChoice base;                  // as configured
  std::vector<PlannedChoice> choices;  // the alternatives
  int best = -1;                       // among choices that learn the same; -1: as configured
  int best_changing = -1;              // among those that change what is learned, if faster still
  std::string advice;                  // the recommended choice and why, in a sentence or two
};

Plan make_plan(PlanInputs inputs);

std::string plan_report(const Plan& plan);
nlohmann::ordered_json to_json(const Plan& plan);

// Parse "1gbit", "100 Mbit/s", "12.5MB/s" to bytes per second, and "20ms", "0.2 ms", "150us" to
// seconds. Throw ConfigError naming `option`.
double parse_bandwidth(const std::string& text, const std::string& option);
double parse_delay(const std::string& text, const std::string& option);
// Parses "0.526/h" or "0.526" to 0.526.
double parse_price(const std::string& text, const std::string& option);

// What TCP leaves of a link's nominal rate for data: 1,448 of 1,538 bytes of a full Ethernet frame.
inline constexpr double kGoodput = 1448.0 / 1538.0;

}  // namespace lockstep

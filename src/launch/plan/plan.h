// A plan: what a run will take, from measurements, and what other choices would change. Kept as
// plan.json (docs/before-a-run.md#planjson), which the run compares with what it measures
// (train/listeners/plan_check.h).
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
  std::vector<std::string> hosts;  // names; one: no exchange over a network
  int ranks_per_host = 1, cores_per_host = 1;
  RunMeasurement facts;  // split as among all ranks
  ComputeModel compute;
  std::string compute_source;  // "11 steps measured on this machine"
  Link link;
  std::string link_source;        // "fitted on sums of 64 kB and 4 MB among 2 hosts", "given"
  int64_t evaluated_items = 0;    // of one evaluation
  double evaluation_seconds = 0;  // of one on one host; below 0: from the measurement
  double price_per_hour = 0;      // of a host; 0: not given
};

struct PlannedChoice {
  Scenario scenario;
  StepPrediction step;
  RunPrediction run;
  double cost = 0;  // price * hosts * hours

  // Of the whole run, so that runs that training.minutes ends compare as well.
  double seconds_per_target() const {
    return run.seconds() / (static_cast<double>(std::max<int64_t>(1, run.steps)) * step.targets);
  }
};

struct Plan {
  PlanInputs inputs;
  PlannedChoice base;                  // as configured
  std::vector<PlannedChoice> choices;  // the what-ifs
  int best = -1;                       // of choices that learn the same; -1: as configured
  int best_changing = -1;              // of those that change what is learned, if better still
  std::string advice;                  // which choice and why, in a sentence or two
};

Plan make_plan(PlanInputs inputs);

std::string plan_report(const Plan& plan);
nlohmann::ordered_json to_json(const Plan& plan);

// "1gbit", "100 Mbit/s", "12.5MB/s" to bytes a second; "20ms", "0.2 ms", "150us" to seconds.
// ConfigError naming `option`.
double parse_bandwidth(const std::string& text, const std::string& option);
double parse_delay(const std::string& text, const std::string& option);
// "0.526/h", "0.526" -> 0.526
double parse_price(const std::string& text, const std::string& option);

// Of a link's nominal rate what TCP leaves for data: 1,448 of 1,538 bytes of a full Ethernet frame.
inline constexpr double kGoodput = 1448.0 / 1538.0;

}  // namespace lockstep

// `lockstep doctor`: examines the hosts of a run before the run, and says of each thing that could
// make the run fail or slow what was seen, what was expected and what to do
// (docs/before-a-run.md#lockstep-doctor).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/probe/probed_hosts.h"

namespace lockstep {

enum class Judgement { kOk, kWarn, kFail };
const char* name_of(Judgement verdict);  // "ok", "warn", "fail"

struct DoctorFinding {
  Judgement verdict = Judgement::kOk;
  std::string check;  // "clock"
  std::string host;   // empty: all hosts; "a - b": a pair
  std::string seen, expected = "", advice = "";
};

// What a configuration needs of its hosts; empty without a configuration, and then not checked.
struct DoctorNeeds {
  std::string config, corpus, run_folder;  // paths as given, relative to `folder`
  std::string folder;                      // the command's current folder, expected on every host
  int64_t gradient_bytes = 0;              // fp32, of the whole network
  // Per rank: its process, weights, gradients and the optimizer's arrays, without activations.
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;          // of all checkpoints that are kept and the one being written
  std::string device = "auto";     // run.device
  bool shares_gpus = false;        // comm.gpu_exchange
  std::string precision = "auto";  // run.precision

  bool wants_gpu() const { return device == "cuda"; }
};

struct HostReport {
  std::string name, address, interface, why;
  int ranks = 1;
  std::string layout;  // reason for `ranks`, where nobody gave it (launch/job/rank_layout.h)
  std::optional<Error> failure;  // why it did not answer; the rest is then empty
  double clock_ahead_seconds = 0, clock_error_seconds = 0;
  nlohmann::ordered_json facts, speed;
};

// The link between two hosts, as `from` measured it.
struct LinkReport {
  std::size_t from = 0, to = 0;
  std::string failure, back_failure;  // why `from` cannot reach `to`, and `to` `from`
  double round_trip_seconds = 0;
  double to_one = 0, to_many = 0, from_one = 0, from_many = 0;  // bytes per second

  double least() const { return std::min(to_many, from_many); }
};

struct ExchangeReport {
  double bytes = 0, seconds = 0;  // of the measured all-reduce; seconds 0: none was measured
  double gradient_seconds = 0;    // of all gradients, scaled from it
  std::string failure;
};

struct DoctorReport {
  std::vector<HostReport> hosts;
  std::vector<LinkReport> links;
  ExchangeReport exchange;
  std::vector<DoctorFinding> findings;
  double seconds = 0;  // that the examination took

  Judgement worst() const;
};

// Examines the hosts and judges them. A host that fails is a finding, not an error.
DoctorReport examine(const HostList& hosts, const RemoteOptions& remote, const DoctorNeeds& needs);

// Returns the findings about what was seen; a pure function.
std::vector<DoctorFinding> judge(const DoctorReport& report, const DoctorNeeds& needs);

// Returns rounds in which every host has at most one partner, so that all pairs meet (the circle
// method of round-robin tournaments). Pairs hold indices below `count`.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> tournament(std::size_t count);

std::string doctor_text(const DoctorReport& report);
nlohmann::ordered_json to_json(const DoctorReport& report);

}  // namespace lockstep

// Reads metrics.jsonl as arrays: every step, evaluation, checkpoint and attempt of a run. A resumed
// run repeats steps: the later ones count, and the cost of the repetition is summed separately. It
// is made for runs of a million steps: lines of steps are scanned without building JSON values.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "report/run/host_history.h"

namespace lockstep {

// Seconds, bytes and counts as docs/run-folder.md#tags defines them; NaN: not in the line.
struct StepRow {
  int64_t step = 0, epoch = 0;
  double time = 0;  // when it ended, seconds since 1970
  double seconds = 0, compute = 0, wait = 0, data = 0;
  double loss, nll, lr, gradient_norm;
  double targets = 0, sources = 0, items = 0, sent_bytes = 0;
  double skipped = 0;          // updates skipped by the run so far
  int attempt = 0;             // index into RunHistory::attempts
  double meeting_seconds = 0;  // for which training stood still after it, for a meeting of groups
  StepRow();
};

struct AttemptRow {
  double began = 0, ended = 0;  // ended: time of its newest line
  int64_t first_step = 1, last_step = 0;
  bool resumed = false;
  std::string end;  // the reason; empty: it broke off, or still runs
};

struct EvaluationRow {
  int64_t step = 0;
  double time = 0, seconds = 0;
  std::map<std::string, double> metrics;  // "bleu" -> 27.1
  std::vector<std::string> improved;      // metrics with a new best
};

struct CheckpointRow {
  int64_t step = 0;
  double time = 0;           // when it was complete
  double seconds = 0;        // for which training stood still
  double write_seconds = 0;  // that writing it took
  double bytes = 0;
  std::string name;
};

// A rank that the others waited for during half a minute or more.
struct InterventionRow {  // of the guard
  int64_t step = 0;
  std::string kind, action, why;
};

struct SlowRankRow {
  int64_t step = 0;
  double time = 0;
  int rank = 0;
  std::string host, guess;  // guess: why
  double factor = 0;        // its busy time per step over the median of the others'
};

struct RunHistory {
  std::vector<StepRow> steps;  // ascending, each once
  std::vector<EvaluationRow> evaluations;
  std::vector<CheckpointRow> checkpoints;      // all that were written, even before a resume
  std::vector<SlowRankRow> slow_ranks;         // of all attempts
  std::vector<InterventionRow> interventions;  // of the steps that count
  std::vector<AttemptRow> attempts;
  int64_t total_steps = 0;    // as configured; 0: unknown
  std::string step_size;      // of the newest attempt: "512 images"; empty: unknown
  std::string device;         // of rank 0 at the newest start, "cpu" or "cuda:0"; empty: unknown
  bool device_clock = false;  // phases of its steps are by the device's clock, not by the host's
  int64_t repeated_steps = 0;
  double repeated_seconds = 0;                            // of steps that were done again
  double evaluation_seconds = 0, checkpoint_seconds = 0;  // of all attempts
  double meeting_seconds = 0;                             // of groups that take local steps
  nlohmann::json plan;                                    // the line of the event; null: none
  HostHistory hosts;                                      // of all attempts

  bool ended() const { return !attempts.empty() && !attempts.back().end.empty(); }
  double wall_seconds() const {
    return attempts.empty() ? 0 : attempts.back().ended - attempts.front().began;
  }
};

// A missing file gives an empty history. Throws DataError (file, line) for lines that are not JSON;
// skips a truncated last line.
RunHistory read_history(const fs::path& metrics);

// Parses one line of a step into `row`; returns false when it is not a flat object of a step.
bool scan_step(std::string_view line, StepRow& row);

}  // namespace lockstep

// Summarises a run folder in figures: epochs, evaluations, times. Of steps that a resumed run
// repeated, the later ones count. What was not measured is absent, not zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct EpochFigures {
  int64_t epoch = 0;
  int64_t steps = 0;
  bool complete = false;
  double seconds = 0;  // of its steps, without evaluations and checkpoints
  double wait_seconds = 0, data_seconds = 0;
  double items = 0;
  double loss = 0;              // mean over the steps, by their items
  double training_seconds = 0;  // from the first step of the run to the end of this epoch
  std::map<std::string, double> evaluation;  // the newest in this epoch: "acc1" -> 61.2
};

struct EvaluationFigures {
  int64_t step = 0;
  std::optional<double> epoch;  // epochs done, with fractions; none: their length is unknown
  double training_seconds = 0;  // of all steps until then
  std::map<std::string, double> metrics;
  std::vector<std::string> improved;
};

struct RunFigures {
  fs::path folder;
  std::string state;                         // "finished", "unfinished", "failed", "stopped"
  int64_t steps = 0, total_steps = 0;        // done and configured; 0: unknown
  std::optional<int> ranks, hosts, threads;  // threads: of each rank
  std::string step_size;  // of a whole step, over all ranks: "512 images"; empty: unknown
  std::map<std::string, std::string> config;  // by key, as people write it
  std::vector<EpochFigures> epochs;
  std::vector<EvaluationFigures> evaluations;
  std::string metric;                     // the first of evaluation.metrics; empty: no evaluation
  std::vector<std::string> further;       // the others of evaluation.metrics
  std::optional<double> best, last;       // of that metric; last: of the newest evaluation
  std::map<std::string, double> last_of;  // every metric of the newest evaluation
  std::optional<double>
      loss;  // of training: of the last complete epoch, else the newest tenth of all steps

  // These exclude steps that warm up: the first epoch where there are others, else the first tenth.
  std::optional<double> step_seconds;  // median
  std::optional<double> items_per_second;
  std::optional<double> wait_share;                         // of the steps' time
  std::optional<double> epoch_seconds, epoch_wait_seconds;  // mean over complete epochs
  std::optional<double> training_seconds;                   // of all steps
  std::optional<double> wall_seconds;  // including evaluations and checkpoints, of all attempts
};

// Throws ConfigError for a folder that holds no run, DataError (file, line) for lines that are not
// JSON; skips a truncated last line. A run without metrics.jsonl is one that did not start.
RunFigures read_run(const fs::path& folder);

}  // namespace lockstep

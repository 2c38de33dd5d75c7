// Reads the words of `lockstep train`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/shared/command_line.h"
#include "train/config/run_config.h"

namespace lockstep {

inline constexpr const char* kGivenAlone = "true";  // the value of a flag without one
inline constexpr const char* kResumeAuto = "auto";

struct TrainArguments {
  std::vector<std::string> words;
  std::string resume;       // empty, kGivenAlone or kResumeAuto
  std::string resume_from;  // the address of a run's second home; empty: none
  bool dry_run = false, verbose = false;
  int expected_hosts = 0;                     // 0: any number
  int64_t bench_steps = 0, bench_start = 10;  // OpenSeq2Seq's names
  int64_t bench_ranks = 0;
  std::string bench_json;

  bool benchmark() const { return bench_steps > 0; }
  // Whether to start where there is no run, and to be done where it is finished.
  bool begins_or_resumes() const { return resume == kResumeAuto; }
};

// Returns false when help was asked for and printed. Throws ConfigError for unknown words.
bool parse_train(const Arguments& arguments, TrainArguments& parsed);

// Throws ConfigError for words that contradict each other or the number of ranks.
void check_train_arguments(const TrainArguments& a, int ranks);

// Returns the configuration file, and moves the key=value words to `settings`. Throws ConfigError
// unless there is one file.
std::string take_config_file(const TrainArguments& arguments, std::vector<std::string>& settings);

// Reads the configuration that the words name. Without a file the one of the run at the address of
// --resume counts.
RunConfig read_train_config(const TrainArguments& arguments);

}  // namespace lockstep

// Makes one file of those that the hosts of a run each have: of attempts whose rank 0 was on
// several machines, and of the logs of a rank that was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A text of one host; only whole lines of it count.
struct JoinSource {
  std::string_view text;
  double zone_seconds = 0;  // local times in it minus UTC
};

// What is to be written one after the other.
using JoinedText = std::vector<std::string_view>;

// What two sources both have, since one of them was a copy of the other, comes once.
// metrics.jsonl: whole attempts, in the order in which they began.
JoinedText join_metrics(const std::vector<JoinSource>& sources);
// launch.jsonl: lines by their `time`.
JoinedText join_launch_events(const std::vector<JoinSource>& sources);
// logs/rankNN.log: lines by the time before each; those without one follow the line before.
JoinedText join_logs(const std::vector<JoinSource>& sources);
// epochs.csv: one header, lines by epoch and step.
JoinedText join_epochs(const std::vector<JoinSource>& sources);

// When the newest attempt in a metrics.jsonl began, in Unix seconds; 0 for none.
double newest_attempt(std::string_view metrics);

// Numbers of one host's files of attempts (times/attempt_N.bin, mlperf_N.log), and when each began.
struct AttemptFile {
  std::size_t source = 0;  // index of the host
  std::string path;
  double began = 0;
};
// The files in the order in which the attempts began; those of one source keep theirs. REQUIRES
// each source's files in the order of their numbers.
std::vector<AttemptFile> order_attempts(const std::vector<std::vector<AttemptFile>>& sources);

}  // namespace lockstep

// Merges the logs of all ranks of a run: lines in order of time, each prefixed with host:rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "report/run/rank_filter.h"

namespace lockstep {

struct LogSource {
  std::string host;         // as live.json names it; may be empty
  double clock_offset = 0;  // of its clock to rank 0's, in seconds; corrects its times
};

class LogMerge {
 public:
  // `logs` is the folder. The first news() begins with the last `lines` lines of each log.

  LogMerge(fs::path logs, RankFilter ranks, std::size_t lines);

  // Sets the sources by rank; they may be set later, or again.
  void set_sources(std::map<int, LogSource> sources) { sources_ = std::move(sources); }
  // Returns the lines that are new since the previous call, with their prefix, each ended by '\n'.
  std::string news();

 private:
  struct File {
    std::uintmax_t offset = 0;
    std::string rest;  // the beginning of a line that is still incomplete
    bool begun = false;
  };
  struct Line {
    double time = 0;  // on rank 0's clock; lines without a time have the previous line's
    int rank = 0;
    std::string text;
  };
  void read_new(const fs::path& path, int rank, std::vector<Line>& out);

  fs::path logs_;
  RankFilter ranks_;
  std::size_t lines_;
  std::map<int, LogSource> sources_;
  std::map<fs::path, File> files_;
};

}  // namespace lockstep

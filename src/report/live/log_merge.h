// The logs of all ranks of a run as one: lines in the order of their times, each behind host:rank.
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
  double clock_offset = 0;  // of its clock to rank 0's, in seconds: times are moved by it
};

class LogMerge {
 public:
  // `logs`: the folder. Begins with the last `lines` lines of each log.
  LogMerge(fs::path logs, RankFilter ranks, std::size_t lines);

  // By rank; may come later or change.
  void set_sources(std::map<int, LogSource> sources) { sources_ = std::move(sources); }
  // The lines that are new since the call before, with their prefix, '\n' at the end of each.
  std::string news();

 private:
  struct File {
    std::uintmax_t offset = 0;
    std::string rest;  // the begin of a line whose end is not there yet
    bool begun = false;
  };
  struct Line {
    double time = 0;  // of rank 0's clock; lines without a time have that of the line before
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

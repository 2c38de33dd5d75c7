// Shows the output of all ranks on one console: whole lines, marked with their rank, and written to
// files on request.
//
// Rank 0's lines are shown unchanged, those of other ranks behind "[rank 1] ", or "[host:1] " over
// several hosts. What a carriage return overwrote is dropped, as a terminal would show it; bytes
// that are not UTF-8 become U+FFFD. On a terminal rank 0's bytes pass at once, so that its progress
// line is redrawn in place; lines of other ranks are put above it. Files get every byte as it was
// written.
#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/processes/descriptor.h"

namespace lockstep {

enum Stream { kStandardOutput = 0, kStandardError = 1 };

// Splits bytes into lines, in whatever pieces they arrive.
class LineSplitter {
 public:
  using Visit = std::function<void(std::string_view line)>;  // without its LF or CR LF

  void take(std::string_view bytes, const Visit& visit);
  void end(const Visit& visit);  // passes on a last line without LF

 private:
  static constexpr std::size_t kLongestLine = 65536;  // bytes; longer lines come in pieces
  std::string line_;
  bool returned_ = false;  // after a CR, LF ends the line and anything else overwrites it
};

class RankOutput {
 public:
  struct Options {
    std::array<int, 2> descriptors = {1, 2};  // that show the two streams; borrowed
    std::filesystem::path folder;             // rank00.out, rank00.err, ...; empty: no files
    std::vector<int> only_ranks;              // shown on the console; empty: all
  };

  // Creates the folder. Throws ConfigError when it already holds output, MachineError when it
  // cannot be written.
  RankOutput(int ranks, const Options& options);

  // Sets the hosts of the ranks from now on, by rank; names are empty for this machine alone.
  void set_hosts(const std::vector<std::string>& hosts) { hosts_ = hosts; }

  // Returns whether a stream is shown on a terminal: rank 0 then gets a terminal as well.
  bool on_terminal(Stream stream) const { return shown_[stream].terminal; }

  void take(int rank, Stream stream, std::string_view bytes);
  void end(int rank, Stream stream);
  void note(std::string_view line);  // shows a line of the launcher itself on standard error

  // The newest lines of a rank, at most 12, from both streams in order of arrival.
  const std::deque<std::string>& last_lines(int rank) const { return ranks_[rank].last; }

 private:
  struct Shown {
    int descriptor = -1;
    bool terminal = false;
  };
  struct Rank {
    std::array<LineSplitter, 2> splitters;
    std::array<Descriptor, 2> files;
    std::deque<std::string> last;
  };
  void remember(int rank, std::string_view line);
  bool is_shown(int rank) const;
  void show_line(int rank, Stream stream, std::string_view line);
  void pass_through(Stream stream, std::string_view bytes);
  void write_above_progress(int descriptor, std::string_view text);

  std::array<Shown, 2> shown_;
  std::vector<Rank> ranks_;
  std::vector<std::string> hosts_;
  std::vector<int> only_ranks_;
  std::string unfinished_;  // rank 0's text on the terminal's last line
  Stream unfinished_stream_ = kStandardError;
};

}  // namespace lockstep

// Starts the ranks of a host as copies of one process that has loaded the program. Loading libtorch
// takes a quarter of a second of a core and 30 MB of relocated memory: a host of eight ranks spends
// that once instead of eight times.
//
// The process runs `lockstep ranks`, forks the ranks and ends, whereupon they become children of
// this process (PR_SET_CHILD_SUBREAPER). Each waits until the orphan killer knows it. Their
// environment and words are what they would have been executed with, also in /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/job/rank_process.h"

namespace lockstep {

class RankNursery {
 public:
  // Returns whether ranks with these commands can be copies of one process: several, of this
  // program, not pinned to different cores, and LOCKSTEP_FORK_RANKS is not 0.
  static bool suits(const std::vector<RankCommand>& commands);

  // Starts the process. REQUIRES suits(commands), and that the calling thread lives as long as the
  // ranks (PR_SET_PDEATHSIG). Throws MachineError.
  explicit RankNursery(const std::vector<RankCommand>& commands);
  ~RankNursery();  // ends ranks that were not let go
  RankNursery(const RankNursery&) = delete;
  RankNursery& operator=(const RankNursery&) = delete;

  // Returns the ranks, by the order of their commands, with output but without processes yet. Call
  // it once.
  std::vector<RankProcess> take_streams() { return std::move(streams_); }

  int descriptor() const { return births_.get(); }  // readable when take_births() has news
  // Returns the processes of all ranks once they are there, each the leader of its own group.
  // Returns an empty list when the process failed; then status() is as from waitpid.
  std::optional<std::vector<pid_t>> take_births();
  int status() const { return status_; }
  // Lets the ranks run, after the orphan killer was told of them.
  void let_go();

 private:
  void reap();

  std::size_t count_;
  std::vector<RankProcess> streams_;
  pid_t process_ = -1;
  Descriptor births_, gate_;
  std::vector<pid_t> born_;
  int status_ = 0;
  bool gone_ = false;  // the ranks run
};

// In the process that RankNursery starts, which has read nothing yet: forks the ranks that `orders`
// describes, a descriptor, and ends; returns in each of them, as the rank, with the words after the
// program's name. REQUIRES that no other thread runs.
std::vector<std::string> live_as_rank(int orders);

}  // namespace lockstep

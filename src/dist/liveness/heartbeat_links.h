// The two ends of a heartbeat: rank 0 listens and hears all others, each of these is connected to
// rank 0. Both keep a table of all ranks up to date. Used by the heartbeat's thread only.
#pragma once

#include <poll.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/liveness/heartbeat_wire.h"

namespace lockstep {

// The present machine's and process's; the host is LOCKSTEP_HOST where the launcher set it.
RankIdentity own_identity(int rank);

class LeaderLinks {
 public:
  using Time = RankSeen::Time;
  // Listens on a free port of `address`. Throws MachineError.
  LeaderLinks(int size, const std::string& address);
  ~LeaderLinks();
  LeaderLinks(const LeaderLinks&) = delete;
  LeaderLinks& operator=(const LeaderLinks&) = delete;

  // What the others need to find and to be let in: "address port token".
  const std::string& meeting() const { return meeting_; }
  void add_to(std::vector<pollfd>& wanted) const;
  // Lets ranks in, hears and answers them. Whoever does not show the token is sent away.
  void serve(std::vector<RankSeen>& ranks, Time now);
  void tell_all(BeatType type, std::string_view body);
  void flush();

 private:
  struct Stranger {
    BeatSocket socket;
    Time since;
  };
  void let_in(std::vector<RankSeen>& ranks, Time now);
  bool greet(Stranger& stranger, std::vector<RankSeen>& ranks, Time now);
  void hear(const BeatFrame& frame, std::vector<RankSeen>& ranks, int rank, Time now);
  void answer(const std::vector<RankSeen>& ranks, int rank, Time now, double beat_sent);

  int listener_;
  Token token_;
  std::string meeting_;
  std::vector<BeatSocket> links_;  // by rank; [0] is closed
  std::vector<int> beats_;         // heard, by rank
  std::vector<Stranger> strangers_;
};

class FollowerLink {
 public:
  using Time = RankSeen::Time;
  // `meeting` as the leader's; fills in the identity's address. Throws MachineError.
  FollowerLink(const std::string& meeting, RankIdentity& identity);

  void add_to(std::vector<pollfd>& wanted) const;
  void beat(RankStatus status, const std::vector<OperationRecord>& newest);
  void tell(const MachineFigures& machine);  // may be left out where the network is slow
  void say(BeatType type, std::string_view text);
  // Hears rank 0; returns the verdict that it sent, if it did.
  std::optional<RankVerdict> serve(std::vector<RankSeen>& ranks, Time now);
  void flush() { link_.flush(); }

 private:
  void hear_answer(const BeatFrame& frame, std::vector<RankSeen>& ranks, Time now);
  void estimate_clock(const BeatAnswer& head);

  BeatSocket link_;
  bool leader_done_ = false;
  // Of the newest answers: round trip and offset, in seconds. The quickest one is the best.
  std::array<std::pair<double, double>, 16> clocks_{};
  std::size_t answers_ = 0;
  double offset_ = 0, round_trip_ = 0;
};

std::string verdict_frame(const RankVerdict& verdict);

}  // namespace lockstep

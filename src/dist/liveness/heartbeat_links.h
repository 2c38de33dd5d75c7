// Declares the two ends of the heartbeat connections: rank 0 listens and hears all others,
// each of which connects to rank 0. Both keep a table of all ranks up to date. Only the
// heartbeat's thread uses them.
#pragma once

#include <poll.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/liveness/heartbeat_wire.h"

namespace lockstep {

// Identifies this machine and process; the host is LOCKSTEP_HOST if the launcher set it.
RankIdentity own_identity(int rank);

class LeaderLinks {
 public:
  using Time = RankSeen::Time;
  // Listens on a free port of `address`. `secret`: of the attempt. Throws MachineError.
  LeaderLinks(int size, const std::string& address, const Token& secret);
  ~LeaderLinks();
  LeaderLinks(const LeaderLinks&) = delete;
  LeaderLinks& operator=(const LeaderLinks&) = delete;

  // Returns where the others find it: a MeetingPlace.
  const std::string& meeting() const { return meeting_; }
  void add_to(std::vector<pollfd>& wanted) const;
  // Accepts, hears and answers ranks. Who does not show that it knows the secret is
  // closed.
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
  Doorkeeper door_;
  std::string meeting_;
  std::vector<BeatSocket> links_;  // by rank; [0] is closed
  std::vector<int> beats_;         // heartbeats heard, by rank
  std::vector<Stranger> strangers_;
};

class FollowerLink {
 public:
  using Time = RankSeen::Time;
  // `meeting` is the leader's meeting(); fills in the identity's address. Throws MachineError.
  FollowerLink(const std::string& meeting, const Token& secret, RankIdentity& identity);

  void add_to(std::vector<pollfd>& wanted) const;
  // Sends of `newest`, this rank's newest operations, those that rank 0 was not told of.
  void beat(RankStatus status, const std::vector<OperationRecord>& newest);
  void tell(const MachineFigures& machine);  // skipped when the network is slow
  void say(BeatType type, std::string_view text);
  // The messages of rank 0 about a stop since the last call.
  std::vector<StopMessage> take_stops() { return std::exchange(stops_, {}); }
  // Reads what rank 0 sent; returns its verdict, if there is one.
  std::optional<RankVerdict> serve(std::vector<RankSeen>& ranks, Time now);
  void flush() { link_.flush(); }

 private:
  void hear_answer(const BeatFrame& frame, std::vector<RankSeen>& ranks, Time now);
  void estimate_clock(const BeatAnswer& head);

  FollowerLink(const MeetingPlace& place, const Token& secret, RankIdentity& identity);
  bool is_welcome(const BeatFrame& frame) const;

  Visitor visitor_;
  bool welcome_ = false;  // rank 0 has shown that it knows the secret
  BeatSocket link_;
  bool leader_done_ = false;
  uint64_t told_operation_ = 0;  // the newest that rank 0 was told of
  std::vector<StopMessage> stops_;
  // Round trip and offset of the newest answers, in seconds. The quickest answer
  // gives the best estimate.
  std::array<std::pair<double, double>, 16> clocks_{};
  std::size_t answers_ = 0;
  double offset_ = 0, round_trip_ = 0;
};

std::string verdict_frame(const RankVerdict& verdict);

}  // namespace lockstep

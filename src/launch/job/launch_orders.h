// What each host of an attempt is told to do: where its ranks work, how they find each other, what
// their environment is, and when the machine is switched off.
#pragma once

#include "launch/job/power_round.h"
#include "launch/job/seats.h"

namespace lockstep {

class LaunchOrders {
 public:
  // The three outlive this.
  LaunchOrders(const Launch& launch, const Seats& seats, const RankOutput& output,
               std::string run_id)
      : launch_(launch), seats_(seats), output_(output), run_id_(std::move(run_id)) {}

  // Throws ConfigError when the others know no address of the host.
  PrepareOrder prepare(int host, const Attempt& attempt) const;
  // Where the ranks on the first host of the attempt are found; "127.0.0.1" on one machine.
  std::string master_address(const Attempt& attempt) const;
  // For ranks from `first_rank`, once every host is prepared and the store listens at `port`.
  StartOrder start(int host, const Attempt& attempt, int first_rank, int port) const;
  // Hosts with an agent, for the last round.
  std::vector<PowerSeat> power_seats() const;

 private:
  // The machine that a person sits at is never switched off; that of a detached job's launcher is a
  // host like others.
  bool stays_on(int host) const;
  void describe_terminal(StartOrder& order) const;
  PowerOrder power(int host, const Attempt& attempt) const;

  const Launch& launch_;
  const Seats& seats_;
  const RankOutput& output_;
  std::string run_id_;
};

}  // namespace lockstep

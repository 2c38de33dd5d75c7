#include "launch/job/launch_orders.h"

#include <sys/ioctl.h>

namespace lockstep {

PrepareOrder LaunchOrders::prepare(int host, const Attempt& attempt) const {
  PrepareOrder order{launch_.folder, launch_.command.front(), launch_.interface,
                     seats_.towards(host, attempt), power(host, attempt)};
  if (order.towards.empty() && !seats_.on_one_machine(attempt) && launch_.interface.empty()) {
    ConfigError error("no address of host {} is known to the others", seats_[host].host.name);
    error.set_advice("give it in a hosts file (address=10.0.0.1), or --interface NAME");
    throw error;
  }
  return order;
}

std::string LaunchOrders::master_address(const Attempt& attempt) const {
  const std::string& address = seats_[attempt.hosts.front()].prepared.address;
  return address.empty() ? "127.0.0.1" : address;
}

StartOrder LaunchOrders::start(int host, const Attempt& attempt, int first_rank, int port) const {
  const Seat& seat = seats_[host];
  StartOrder order;
  order.command = launch_.command;
  order.first_rank = first_rank;
  order.ranks = seats_.ranks(host);
  order.size = attempt.ranks;
  order.attempt = attempt.number;
  order.run_id = run_id_;
  order.secret = attempt.secret;
  order.host = seat.host.name;
  order.address = seat.prepared.address;
  order.interface = seat.prepared.interface;
  order.master_address = master_address(attempt);
  order.master_port = port;
  const bool share_this_machine = seats_[attempt.hosts.front()].prepared.address.empty();
  if (share_this_machine && !seats_.here()) order.address = order.master_address;
  order.environment = launch_.environment;
  order.grace_milliseconds = launch_.supervision.grace.count();
  order.pin = launch_.pin || seat.host.pin;
  describe_terminal(order);
  return order;
}

void LaunchOrders::describe_terminal(StartOrder& order) const {
  for (Stream stream : {kStandardOutput, kStandardError}) {
    order.terminal[stream] = output_.on_terminal(stream);
    winsize size{};
    if (!order.terminal[stream] || ::ioctl(stream + 1, TIOCGWINSZ, &size) != 0) continue;
    order.rows = size.ws_row;
    order.columns = size.ws_col;
  }
}

std::vector<PowerSeat> LaunchOrders::power_seats() const {
  std::vector<PowerSeat> out;
  if (seats_.here()) return out;
  for (int i = 0; i < static_cast<int>(launch_.hosts.hosts.size()); ++i) {
    const Seat& seat = seats_[i];
    if (!seat.control || !seat.agent) continue;
    out.push_back({.host = i,
                   .name = seat.host.name,
                   .stays = stays_on(i),
                   .launcher = is_this_machine(seat.host)});
  }
  return out;
}

bool LaunchOrders::stays_on(int host) const {
  return !launch_.ending.detached && is_this_machine(seats_[host].host);
}

PowerOrder LaunchOrders::power(int host, const Attempt& attempt) const {
  const EndingOptions& ending = launch_.ending;
  if (!ending.power.off || seats_.here() || stays_on(host)) return {};
  const std::string& command = ending.power.command;
  return {.command = command.empty() ? "default" : command,
          .after_seconds = ending.power.after_minutes * 60,
          .run_folder = ending.run,
          .leads = host == attempt.hosts.front(),
          .mirrored = ending.mirrored,
          .anyway = ending.power.anyway};
}

}  // namespace lockstep

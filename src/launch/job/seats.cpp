#include "launch/job/seats.h"

#include <algorithm>

#include "dist/rank/network.h"
#include "launch/hosts/host_address.h"

namespace lockstep {

std::string Seat::address() const {
  return address_for_others(host, {hello.ssh_address, hello.addresses});
}

Seats::Seats(const Launch& launch, EventLoop& loop, HostEvents& events)
    : launch_(launch), loop_(loop), events_(events) {
  for (const Host& host : launch.hosts.hosts) {
    seats_.push_back({.host = host, .control = {}, .agent = {}});
  }
  if (!here()) return;
  seats_.push_back(
      {.host = {}, .control = make_local_host(loop, events, 0, launch.spot), .agent = {}});
}

std::vector<Host> Seats::hosts() const {
  std::vector<Host> out;
  for (const Seat& seat : seats_) out.push_back(seat.host);
  return out;
}

std::vector<SupervisedHost> Seats::supervised() const {
  std::vector<SupervisedHost> out;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Host& host = seats_[i].host;
    out.push_back({.name = host.name, .slots = ranks(static_cast<int>(i)), .away = host.away});
  }
  return out;
}

std::vector<std::string> Seats::names() const {
  std::vector<std::string> out;
  for (const Seat& seat : seats_) {
    if (!seat.host.name.empty()) out.push_back(seat.host.name);
  }
  return out;
}

std::vector<std::string> Seats::names_by_rank(const Attempt& attempt) const {
  std::vector<std::string> out;
  for (int host : attempt.hosts) out.insert(out.end(), ranks(host), seats_[host].host.name);
  return out;
}

void Seats::connect(int host) {
  Seat& seat = seats_[host];
  AgentPlace place{seat.host,           host,        launch_.remote, launch_.silence, seat.agent,
                   launch_.agent_words, launch_.spot};
  release(host);
  seat.control = make_remote_host(loop_, events_, place);
}

void Seats::release(int host) {
  if (seats_[host].control) released_.push_back(std::move(seats_[host].control));
}

void Seats::replace(int host, const Host& machine) {
  Seat& seat = seats_[host];
  seat.host.name = machine.name;
  seat.host.ssh_name = machine.ssh_name;
  seat.host.address = machine.address;
  seat.agent.reset();
  seat.hello = {};
  seat.prepared = {};
}

bool Seats::on_one_machine(const Attempt& attempt) const {
  if (here()) return true;
  const std::string& first = seats_[attempt.hosts.front()].hello.machine;
  return !first.empty() && std::all_of(attempt.hosts.begin(), attempt.hosts.end(), [&](int host) {
    return seats_[host].hello.machine == first;
  });
}

std::string Seats::towards(int host, const Attempt& attempt) const {
  if (on_one_machine(attempt)) return "";
  const int first = attempt.hosts.front();
  std::vector<int> others = {first};
  if (host == first) others.assign(attempt.hosts.begin() + 1, attempt.hosts.end());
  for (int other : others) {
    std::string address = seats_[other].address();
    if (!address.empty()) return address;
  }
  // This machine has many names and no ssh that tells its address; its route to the others does.
  const std::string beyond = seats_[host].address();
  return beyond.empty() ? "" : local_address_towards(beyond).address;
}

void Seats::collect_ends() {
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->collect_ends();
  }
}

void Seats::check_time(Clock::time_point now) {
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->check_time(now);
  }
}

std::optional<Clock::time_point> Seats::next_deadline() const {
  std::optional<Clock::time_point> next;
  for (const Seat& seat : seats_) {
    if (seat.control) next = earlier(next, seat.control->next_deadline());
  }
  return next;
}

void Seats::leave() {
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->leave();
  }
}

}  // namespace lockstep

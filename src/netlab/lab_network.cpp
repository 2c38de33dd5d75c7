// Implements the network of a lab: addresses, lines and paths, and how they change.
#include <algorithm>

#include "base/text.h"
#include "netlab/lab.h"
#include "netlab/tap.h"

namespace lockstep {

namespace {

constexpr const char* kInterfaces[] = {"eth0", "ssh0"};

MacAddress mac_of(int network, int host) {
  auto number = static_cast<unsigned>(host + 1);
  return {0x02,
          0x6c,
          0x6b,
          static_cast<uint8_t>(network),
          static_cast<uint8_t>(number >> 8),
          static_cast<uint8_t>(number & 0xff)};
}

}  // namespace

std::string Lab::address_in(int network, int host) const {
  std::vector<std::string> parts = split(config_.network.subnet, '.');
  if (network == kControl) parts[2] = std::to_string((std::stoi(parts[2]) + 1) % 256);
  parts[3] = std::to_string(host + 1 == config_.size() ? 254 : host + 1);
  return join(parts, ".");
}

std::string Lab::address(const std::string& host) const { return address_in(kData, index(host)); }

std::string Lab::ssh_address(const std::string& host) const {
  return address_in(config_.separate_control() ? kControl : kData, index(host));
}

double Lab::rate_of(int host) const {
  if (host + 1 == config_.size()) return 0;
  const double own = config_.host(host).rate_mbit;
  return own >= 0 ? own : config_.network.rate_mbit;
}

void Lab::set_up_network() {
  const LabNetwork& network = config_.network;
  SwitchOptions options{.ports = config_.size(),
                        .queue_ms = network.queue_ms,
                        .seed = static_cast<uint64_t>(network.seed)};
  networks_.push_back(std::make_unique<Switch>(options));
  if (config_.separate_control()) networks_.push_back(std::make_unique<Switch>(options));
  int hosts = config_.size() - 1;
  for (int from = 0; from < hosts; ++from) {
    networks_[kData]->set_rate(from, rate_of(from));
    for (int to = 0; to < hosts; ++to) {
      networks_[kData]->set_path(from, to, {network.delay_ms, network.jitter_ms, network.loss});
    }
  }
  // The line of `control`, the owner's laptop, has a limit where the file names it.
  const double control = config_.host(hosts).rate_mbit;
  if (!config_.separate_control() && control > 0) networks_[kData]->set_rate(hosts, control);
  for (const LabLink& link : config_.links) change_paths(link, "set", 0);
}

void Lab::plug_in(int host, int network) {
  Machine& machine = machines_[static_cast<std::size_t>(host)];
  double rate = network == kData ? networks_[kData]->rate_mbit(host) : 0;
  TapOptions options{.name = kInterfaces[network],
                     .mac = mac_of(network, host),
                     .address = address_in(network, host),
                     .mtu = static_cast<int>(config_.network.mtu),
                     .speed_mbit = rate};
  Descriptor tap;
  {
    InNetworkNamespace there(machine.host->network_namespace());
    tap = open_tap(options);
    set_largest_frame(options.name, largest_frame_at(rate));
    for (int other = 0; other < config_.size() && !config_.network.arp; ++other) {
      if (other == host) continue;
      add_neighbour(options.name, address_in(network, other), mac_of(network, other));
    }
  }
  networks_[static_cast<std::size_t>(network)]->attach(host, std::move(tap));
}

void Lab::change_paths(const LabChange& change, const std::string& action, double lasts) {
  int control = config_.size() - 1;
  std::vector<int> hosts, others;
  for (const std::string& name : change.hosts) hosts.push_back(index(name));
  for (const std::string& name : change.to) others.push_back(index(name));
  // The launcher's line is cut with the others, but takes no part in their delays.
  int last = action == "set" ? control : config_.size();
  for (int i = 0; change.to.empty() && i < last; ++i) others.push_back(i);
  for (std::size_t n = 0; n < networks_.size(); ++n) {
    bool wanted = change.network == "all" || (change.network == "control") == (n == kControl);
    if (!wanted) continue;
    for (int a : hosts) {
      for (int b : others) {
        if (a == b) continue;
        if (change.direction != "in") change_one(*networks_[n], a, b, change, action, lasts);
        if (change.direction != "out") change_one(*networks_[n], b, a, change, action, lasts);
      }
      if (change.rate_mbit < 0) continue;
      double before = networks_[n]->rate_mbit(a);
      int net = static_cast<int>(n);
      set_line(a, net, change.rate_mbit);
      if (lasts > 0) plan(lasts, [this, net, a, before] { set_line(a, net, before); });
    }
  }
}

void Lab::set_line(int host, int network, double rate_mbit) {
  networks_[static_cast<std::size_t>(network)]->set_rate(host, rate_mbit);
  std::lock_guard lock(mutex_);
  Machine& machine = machines_[static_cast<std::size_t>(host)];
  if (!machine.host) return;  // plug_in will apply the rate
  InNetworkNamespace there(machine.host->network_namespace());
  set_largest_frame(kInterfaces[network], largest_frame_at(rate_mbit));
}

void Lab::change_one(Switch& net, int from, int to, const LabChange& change,
                     const std::string& action, double lasts) {
  SwitchPath before = net.path(from, to), after = before;
  if (action != "set") after.cut = action == "cut";
  if (change.delay_ms >= 0) after.delay_ms = change.delay_ms;
  if (change.jitter_ms >= 0) after.jitter_ms = change.jitter_ms;
  if (change.loss >= 0) after.loss = change.loss;
  if (after == before) return;
  net.set_path(from, to, after);
  if (lasts <= 0) return;
  // Only what this change made is undone, since others may have followed.
  plan(lasts, [&net, from, to, before, after] {
    SwitchPath path = net.path(from, to);
    if (after.cut != before.cut) path.cut = before.cut;
    if (after.delay_ms != before.delay_ms) path.delay_ms = before.delay_ms;
    if (after.jitter_ms != before.jitter_ms) path.jitter_ms = before.jitter_ms;
    if (after.loss != before.loss) path.loss = before.loss;
    net.set_path(from, to, path);
  });
}

}  // namespace lockstep

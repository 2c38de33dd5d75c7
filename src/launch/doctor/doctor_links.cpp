// Judges the addresses, ports and links that a doctor examined.
#include <algorithm>

#include "base/text.h"
#include "launch/doctor/doctor_findings.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kSlowLink = 0.6;      // of the median of the links
constexpr double kLopsided = 0.6;      // of the other direction
constexpr double kBelowNominal = 0.5;  // of the interface's rate

class LinkChecks : public detail::Findings {
 public:
  using Findings::Findings;

  std::vector<DoctorFinding> all() {
    check_addresses();
    check_links();
    check_link_speeds();
    check_tcp();
    check_exchange();
    return take();
  }

 private:
  std::string pair_name(const LinkReport& link) const {
    return report_.hosts[link.from].name + " - " + report_.hosts[link.to].name;
  }

  void check_addresses() {
    for (const HostReport* host : answering_) {
      if (host->address.empty()) {
        add({Judgement::kFail, "interface", host->name, "no address that the others could reach",
             "a private address", "give one: address=10.0.0.2 in the hosts file"});
        continue;
      }
      if (host->interface.empty()) {
        add({Judgement::kFail, "interface", host->name, host->address + " is none of its own",
             "an address of an interface there",
             "the private address, not a public one behind NAT"});
        continue;
      }
      if (is_virtual(host->interface)) {
        add({Judgement::kWarn, "interface", host->name,
             fmt::format("{} ({}) joins containers or virtual machines", host->interface,
                         host->address),
             "an interface of the network", "the private address of the host itself"});
      }
      name_second_path(*host);
    }
    fine("interface", chosen_text());
  }

  static bool is_virtual(const std::string& name) {
    for (const char* prefix : {"docker", "br-", "virbr", "lxc", "lxd", "cni", "flannel", "cali"}) {
      if (name.rfind(prefix, 0) == 0) return true;
    }
    return false;
  }

  static int64_t nominal_mbit(const HostReport& host, const std::string& interface) {
    for (const Json& i : host.facts.at("interfaces")) {
      if (i.at("name") == interface) return i.at("speed_mbit");
    }
    return -1;
  }

  void name_second_path(const HostReport& host) {
    const int64_t chosen = nominal_mbit(host, host.interface);
    for (const Json& i : host.facts.at("interfaces")) {
      const std::string name = i.at("name");
      if (name == host.interface || i.at("loopback") || !i.at("up") || is_virtual(name)) continue;
      const int64_t speed = i.at("speed_mbit");
      const std::string seen = fmt::format("{} ({}{}) is a second way; {} ({}) was chosen: {}",
                                           name, i.at("address").get<std::string>(),
                                           speed > 0 ? fmt::format(", {} Mbit/s", speed) : "",
                                           host.interface, host.address, host.why);
      const bool faster = speed > 0 && chosen > 0 && speed > chosen;
      add({faster ? Judgement::kWarn : Judgement::kOk, "interface", host.name, seen,
           faster ? "the fastest" : "",
           faster ? "give the address of " + name + " in the hosts file" : ""});
    }
  }

  std::string chosen_text() const {
    std::vector<std::string> parts;
    for (const HostReport* host : answering_) {
      parts.push_back(fmt::format("{} {} ({})", host->name, host->interface, host->address));
    }
    return join(parts, ", ");
  }

  void check_links() {
    for (const LinkReport& link : report_.links) {
      for (const std::string& failure : {link.failure, link.back_failure}) {
        if (failure.empty()) continue;
        add({Judgement::kFail, "ports", pair_name(link), failure,
             "TCP on any port between the private addresses",
             "let the hosts' firewall or security group pass it (lockstep cluster check)"});
      }
    }
    fine("ports", "every host reaches the others");
  }

  void check_link_speeds() {
    std::vector<double> speeds, delays;
    for (const LinkReport& link : report_.links) {
      if (!link.failure.empty()) continue;
      speeds.push_back(link.least());
      delays.push_back(link.round_trip_seconds);
    }
    if (speeds.empty()) return;
    auto middle = [](std::vector<double>& v) {
      std::sort(v.begin(), v.end());
      return v[v.size() / 2];
    };
    const double speed = middle(speeds), delay = middle(delays);
    for (const LinkReport& link : report_.links) {
      if (link.failure.empty()) check_link_speed(link, speed, delay);
    }
    fine("network", fmt::format("{}/s, round trips of {:.2f} ms", short_bytes(speed), delay * 1e3));
  }

  void check_link_speed(const LinkReport& link, double speed, double delay) {
    auto rate = [](double bytes) {
      return fmt::format("{}/s ({:.3g} Gbit/s)", short_bytes(bytes), bytes * 8e-9);
    };
    const std::string name = pair_name(link);
    if (link.least() < kSlowLink * speed) {
      add({Judgement::kWarn, "network", name, rate(link.least()), rate(speed) + ", the median",
           "a sum over all hosts is as slow as its slowest link: cable, switch port, other "
           "traffic?"});
    }
    const double slow = std::min(link.to_many, link.from_many);
    const double fast = std::max(link.to_many, link.from_many);
    if (slow < kLopsided * fast) {
      const bool towards = link.to_many < link.from_many;
      const std::string &a = report_.hosts[towards ? link.from : link.to].name,
                        &b = report_.hosts[towards ? link.to : link.from].name;
      add({Judgement::kWarn, "network", name,
           fmt::format("{} from {} to {}, {} back", rate(slow), a, b, rate(fast)),
           "the same both ways", "duplex of the port (ethtool), a shaped or shared uplink"});
    }
    const int64_t nominal =
        std::min(nominal_mbit(report_.hosts[link.from], report_.hosts[link.from].interface),
                 nominal_mbit(report_.hosts[link.to], report_.hosts[link.to].interface));
    if (nominal > 0 && link.least() < kBelowNominal * static_cast<double>(nominal) * 1e6 / 8) {
      add({Judgement::kWarn, "network", name, rate(link.least()),
           fmt::format("more of the {} Mbit/s of the interfaces", nominal),
           "a slower switch between them, or the cloud's limit for this kind of machine"});
    }
    constexpr double kFarther = 5, kNoticed = 1e-3;
    if (link.round_trip_seconds > kFarther * delay && link.round_trip_seconds > kNoticed) {
      add({Judgement::kWarn, "network", name,
           fmt::format("a round trip takes {:.1f} ms", link.round_trip_seconds * 1e3),
           fmt::format("{:.1f} ms, the median", delay * 1e3), "hosts of one zone and one subnet"});
    }
  }

  // Judges what the kernel's settings cost on these links.
  void check_tcp() {
    double worst_delay = 0, worst_product = 0;
    for (const LinkReport& link : report_.links) {
      worst_delay = std::max(worst_delay, link.round_trip_seconds);
      worst_product = std::max(worst_product, link.least() * link.round_trip_seconds);
    }
    constexpr double kFar = 2e-3;  // below, windows grow again at once
    for (const HostReport* host : answering_) {
      const Json& network = host->facts.at("network");
      if (worst_delay > kFar && network.value("slow_start_after_idle", 0) == 1) {
        add({Judgement::kWarn, "tcp", host->name,
             fmt::format("tcp_slow_start_after_idle = 1 with round trips of {:.0f} ms",
                         worst_delay * 1e3),
             "0: every step begins with an idle connection",
             "sysctl -w net.ipv4.tcp_slow_start_after_idle=0"});
      }
      const double least =
          std::min(network.value("receive_bytes_max", 0.0), network.value("send_bytes_max", 0.0));
      if (least > 0 && least < 2 * worst_product) {
        add({Judgement::kWarn, "tcp", host->name,
             fmt::format("buffers of at most {}", short_bytes(least)),
             fmt::format("{}: twice bandwidth x delay", short_bytes(2 * worst_product)),
             fmt::format("sysctl -w net.ipv4.tcp_rmem='4096 131072 {0}' net.ipv4.tcp_wmem='4096 "
                         "16384 {0}'",
                         static_cast<int64_t>(4 * worst_product))});
      }
    }
    fine("tcp", "settings suit these links");
  }

  void check_exchange() {
    const ExchangeReport& e = report_.exchange;
    if (!e.failure.empty()) {
      add({Judgement::kFail, "all-reduce", "", e.failure, "a sum over all hosts", ""});
    } else if (e.seconds > 0) {
      add({Judgement::kOk, "all-reduce", "",
           fmt::format("{:.3f} s for all gradients ({}), from {} in {:.3f} s", e.gradient_seconds,
                       short_bytes(static_cast<double>(needs_.gradient_bytes)),
                       short_bytes(e.bytes), e.seconds)});
    }
  }
};

}  // namespace

std::vector<DoctorFinding> detail::judge_links(const DoctorReport& report,
                                               const DoctorNeeds& needs) {
  return LinkChecks(report, needs).all();
}

}  // namespace lockstep

#include "netlab/lab_config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/source.h"

namespace lockstep {

namespace {

const OneOf kNetworks{{"data", "control", "all"}};
const OneOf kDirections{{"both", "out", "in"}};
const OneOf kActions{{"cut", "heal", "set", "power-off", "power-on"}};

// Collects the keys that a struct describes.
class KeyList : public Fields {
 public:
  std::vector<std::string> keys;

 protected:
  void field(const std::string& key, FieldRef, const Rule&, std::string_view) override {
    keys.push_back(key);
  }
};

// Reads [[name]], a list of tables.
template <typename Entry>
std::vector<Entry> read_list(ConfigSource& source, const std::string& name) {
  KeyList list;
  Entry pattern;
  pattern.describe(list);
  std::vector<Entry> out;
  for (;;) {
    std::string section = fmt::format("{}[{}]", name, out.size());
    auto is_set = [&](const std::string& key) { return source.has(section + "." + key); };
    if (std::none_of(list.keys.begin(), list.keys.end(), is_set)) return out;
    source.read(section, out.emplace_back());
  }
}

bool is_host_name(const std::string& name) {
  auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-'; };
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

void check_names(ConfigSource& source, const std::vector<std::string>& names) {
  const char* key = "hosts.names";
  if (names.empty() || names.size() > kMostVirtualHosts) {
    source.add_error(key, fmt::format("expected 1 to {} names", kMostVirtualHosts));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_host_name(names[i])) {
      source.add_error(key, fmt::format("\"{}\": expected letters, digits and -", names[i]));
    }
    if (names[i] == kControlHost || names[i] == "localhost") {
      source.add_error(key, fmt::format("\"{}\" is taken", names[i]));
    }
    if (std::find(names.begin(), names.begin() + static_cast<long>(i), names[i]) !=
        names.begin() + static_cast<long>(i)) {
      source.add_error(key, fmt::format("\"{}\" stands there twice", names[i]));
    }
  }
}

void check_host(ConfigSource& source, const LabConfig& lab, const std::string& key,
                const std::string& name) {
  if (lab.index_of(name) >= 0) return;
  std::vector<std::string> names = lab.hosts.names;
  names.push_back(kControlHost);
  source.add_error(key, fmt::format("no host \"{}\"{} ({})", name, did_you_mean(name, names),
                                    join(names, ", ")));
}

void check_change(ConfigSource& source, const LabConfig& lab, const std::string& prefix,
                  const LabChange& change) {
  if (change.hosts.empty()) source.add_error(prefix + "hosts", "expected one host or more");
  for (const std::string& name : change.hosts) check_host(source, lab, prefix + "hosts", name);
  for (const std::string& name : change.to) check_host(source, lab, prefix + "to", name);
  if (!lab.separate_control() && change.network == "control") {
    source.add_error(prefix + "network", "this lab has no control network of its own");
  }
  if (change.rate_mbit >= 0 && !change.to.empty()) {
    source.add_error(prefix + "rate_mbit", "is that of a host's line: no `to`");
  }
}

void check_event(ConfigSource& source, const LabConfig& lab, const std::string& prefix,
                 const LabEvent& event) {
  if (event.action.empty()) {
    source.add_error(prefix + "action", "expected one of " + join(kActions.names, ", "));
  }
  check_change(source, lab, prefix, event);
  bool changes =
      event.delay_ms >= 0 || event.jitter_ms >= 0 || event.loss >= 0 || event.rate_mbit >= 0;
  if (event.action == "set" && !changes) {
    source.add_error(prefix + "action",
                     "\"set\" sets nothing: expected delay_ms, jitter_ms, loss or rate_mbit");
  }
  if (event.action != "set" && changes) {
    source.add_error(prefix + "action", "only \"set\" takes delay_ms, jitter_ms, loss, rate_mbit");
  }
  bool power = event.action == "power-off" || event.action == "power-on";
  if (power && (!event.to.empty() || event.direction != "both")) {
    source.add_error(prefix + "action", "power is that of whole hosts: no `to`, no `direction`");
  }
  auto is_control = [](const std::string& name) { return name == kControlHost; };
  if (power && std::any_of(event.hosts.begin(), event.hosts.end(), is_control)) {
    source.add_error(prefix + "hosts", "the control host stays on");
  }
}

constexpr const char* kNeedsOwnFiles = "needs hosts.files = \"own\"";

void check_own_files(ConfigSource& source, const LabConfig& lab, const std::string& prefix,
                     const LabHost& host) {
  const LabHost none;
  if (!lab.hosts.own_files()) {
    for (const auto& [key, differs] : {std::pair{"user", host.user != none.user},
                                       {"home", host.home != none.home},
                                       {"system", host.system != none.system}}) {
      if (differs) source.add_error(prefix + key, kNeedsOwnFiles);
    }
  }
  auto allowed = [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '-' || c == '_';
  };
  if (host.user.empty() || host.user.size() > 32 || !std::islower(host.user[0]) ||
      !std::all_of(host.user.begin(), host.user.end(), allowed)) {
    source.add_error(prefix + "user", "expected small letters, digits, - and _");
  }
  if (!host.home.empty() && (host.home.front() != '/' || host.user == "root")) {
    source.add_error(prefix + "home", "expected an absolute path, of a user who is not root");
  }
  if (host.system.empty() || host.system.front() != '/') {
    source.add_error(prefix + "system", "expected the absolute path of a root");
  }
}

LabConfig read_all(ConfigSource source) {
  LabConfig lab;
  source.read("network", lab.network);
  source.read("hosts", lab.hosts);
  lab.own = read_list<LabHost>(source, "host");
  lab.links = read_list<LabLink>(source, "link");
  lab.events = read_list<LabEvent>(source, "event");
  check_names(source, lab.hosts.names);
  in_addr parsed{};
  if (::inet_pton(AF_INET, lab.network.subnet.c_str(), &parsed) != 1 ||
      (ntohl(parsed.s_addr) & 0xff) != 0) {
    source.add_error("network.subnet", fmt::format("expected four numbers that end in 0, as in "
                                                   "10.77.0.0, got \"{}\"",
                                                   lab.network.subnet));
  }
  for (const std::string& folder : lab.hosts.private_folders) {
    if (folder.empty() || folder.front() != '/' || folder == "/") {
      source.add_error("hosts.private",
                       fmt::format("expected absolute paths below /, got \"{}\"", folder));
    }
  }
  for (const std::string& entry : lab.hosts.contents) {
    if (entry.find(":/") == std::string::npos || entry.front() != '/') {
      source.add_error("hosts.contents",
                       fmt::format("expected absolute paths as /HERE:/THERE, got \"{}\"", entry));
    }
  }
  if (!lab.hosts.contents.empty() && !lab.hosts.own_files()) {
    source.add_error("hosts.contents", kNeedsOwnFiles);
  }
  for (std::size_t i = 0; i < lab.own.size(); ++i) {
    const std::string prefix = fmt::format("host[{}].", i);
    check_host(source, lab, prefix + "name", lab.own[i].name);
    check_own_files(source, lab, prefix, lab.own[i]);
  }
  for (std::size_t i = 0; i < lab.links.size(); ++i) {
    check_change(source, lab, fmt::format("link[{}].", i), lab.links[i]);
  }
  for (std::size_t i = 0; i < lab.events.size(); ++i) {
    check_event(source, lab, fmt::format("event[{}].", i), lab.events[i]);
  }
  source.finish();
  return lab;
}

}  // namespace

void LabNetwork::describe(Fields& f) {
  f("delay_ms", &delay_ms, Between{0, 60001}, "from any host to any other, one way");
  f("jitter_ms", &jitter_ms, Between{0, 60001}, "the delay varies by as much up and down");
  f("loss", &loss, Between{0, 1}, "share of packets that get lost");
  f("rate_mbit", &rate_mbit, Between{0, 1e6}, "of each host's line, each way; 0: no limit");
  f("queue_ms", &queue_ms, Above{0}, "what a line holds back at most; more is dropped");
  f("mtu", &mtu, Between{576, 65522}, "largest packet, bytes");
  f("subnet", &subnet, Any{}, "the hosts' addresses are .1, .2, ... of this /24");
  f("control", &control, OneOf{{"same", "separate"}},
    "how ssh reaches the hosts: through this network, or through one of its own without delay");
  f("arp", &arp, Any{}, "hosts ask for each other's Ethernet addresses instead of knowing them");
  f("seed", &seed, Any{}, "of loss and jitter");
}

void LabHosts::describe(Fields& f) {
  f("names", &names, Any{}, "one virtual host each");
  f("sshd", &sshd, Any{}, "each host runs an ssh server");
  f("files", &files, OneOf{{"shared", "own"}},
    "shared: this machine's; own: a root of its own for each host, without keys to the others");
  f("contents", &contents, Any{}, "folders that each host's own files begin with, as /HERE:/THERE");
  f("decoy", &decoy, Any{},
    "each host has a docker0 before its real interface and its own name at 127.0.1.1");
  f("cpu", &cpu, Between{0, 1e4}, "cores that a host may use; 0: all");
  f("private", &private_folders, Any{}, "folders that every host has for itself");
  f("disk_mb", &disk_mb, Between{0, 1e6},
    "size of the private folders, in memory; 0: no limit, kept in the lab's folder");
  f("sysctl", &sysctl, Any{}, "kernel settings of each host, as net.ipv4.tcp_sack=0");
}

void LabHost::describe(Fields& f) {
  f("name", &name, Any{}, "which host");
  f("rate_mbit", &rate_mbit, Between{0, 1e6}, "of its line, each way; 0: no limit");
  f("cpu", &cpu, Between{0, 1e4}, "cores that it may use; 0: all");
  f("user", &user, Any{}, "whom ssh logs in as, where hosts have files of their own");
  f("home", &home, Any{}, "of that user (/home/USER)");
  f("system", &system, Any{}, "a root, as debootstrap makes it, in place of this machine's system");
}

void LabChange::describe(Fields& f) {
  f("hosts", &hosts, Any{}, "paths from and to these hosts");
  f("to", &to, Any{}, "only those between `hosts` and these");
  f("direction", &direction, kDirections, "out: what `hosts` send; in: what they receive");
  f("network", &network, kNetworks, "which network, where control is separate (data)");
  f("delay_ms", &delay_ms, Between{0, 60001}, "one way");
  f("jitter_ms", &jitter_ms, Between{0, 60001}, "the delay varies by as much up and down");
  f("loss", &loss, Between{0, 1}, "share of packets that get lost");
  f("rate_mbit", &rate_mbit, Between{0, 1e6}, "of the hosts' lines, each way; 0: no limit");
}

void LabEvent::describe(Fields& f) {
  f("at", &at, AtLeast{0}, "seconds after the start");
  f("action", &action, kActions, "what happens");
  f("for", &lasts, Above{0}, "seconds until it is undone; without: it stays");
  LabChange::describe(f);
}

int LabConfig::index_of(const std::string& host) const {
  if (host == kControlHost) return size() - 1;
  auto found = std::find(hosts.names.begin(), hosts.names.end(), host);
  return found == hosts.names.end() ? -1 : static_cast<int>(found - hosts.names.begin());
}

LabHost LabConfig::host(int index) const {
  for (const LabHost& one : own) {
    if (index_of(one.name) == index) return one;
  }
  return {};
}

LabConfig read_lab_config(const std::filesystem::path& path) {
  return read_all(ConfigSource::from_file(path));
}

LabConfig read_lab_config(std::string_view toml, const std::string& name) {
  return read_all(ConfigSource::from_text(toml, name));
}

LabEvent read_lab_event(std::string_view toml, const LabConfig& lab) {
  ConfigSource source = ConfigSource::from_text(toml, "netlab set");
  LabEvent event;
  source.read("", event);
  check_event(source, lab, "", event);
  source.finish();
  return event;
}

}  // namespace lockstep

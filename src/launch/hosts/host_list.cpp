#include "launch/hosts/host_list.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/instance_list.h"

namespace lockstep {

namespace {

struct Entry {
  Host host;
  std::string place;  // "-H", "hosts.txt:3"
};

int to_number(std::string_view text, const std::string& place) {
  int slots = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (failed != std::errc() || end != text.data() + text.size() || slots < 1 ||
      slots > kMostSlots) {
    throw ConfigError("{}: slots \"{}\": expected a number of ranks from 1 to {}", place, text,
                      kMostSlots);
  }
  return slots;
}

int to_slots(std::string_view text, const std::string& place) {
  return text == "auto" ? kAutoSlots : to_number(text, place);
}

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  std::string plain = text.substr(0, text.find('%'));  // without the zone of fe80::1%eth0
  return ::inet_pton(AF_INET, plain.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, plain.c_str(), bytes) == 1;
}

// A name becomes one of ssh's words: it may not look like an option or hold characters that shells
// read.
void check_name(std::string_view name, const std::string& place) {
  constexpr std::string_view kAllowed = "._-%:+@";
  bool good = !name.empty() && name.front() != '-';
  for (unsigned char c : name) {
    good = good && (std::isalnum(c) || c >= 0x80 || kAllowed.find(c) != std::string_view::npos);
  }
  if (!good) throw ConfigError("{}: \"{}\" is no name of a host", place, name);
}

void check_address(const std::string& address, const std::string& place) {
  if (!is_address(address)) {
    throw ConfigError("{}: address \"{}\": expected a numeric address, as 10.0.0.1", place,
                      address);
  }
}

std::vector<Entry> parse_words(const std::string& words) {
  std::vector<Entry> out;
  for (const std::string& word : split(words, ',')) {
    std::string place = fmt::format("-H {}", words);
    out.push_back({detail::parse_host(trim(word), place), "-H"});
  }
  return out;
}

double to_price(const std::string& value, const std::string& place) {
  char* end = nullptr;
  const double price = std::strtod(value.c_str(), &end);
  const std::string_view rest(end);
  if (end == value.c_str() || (!rest.empty() && rest != "/h") || !std::isfinite(price) ||
      price <= 0) {
    throw ConfigError("{}: price={}: expected the price of an hour, above 0, as 0.526/h", place,
                      value);
  }
  return price;
}

struct Settings {
  std::optional<int> slots, most_slots;
};

void apply_setting(std::string_view word, const std::string& place, Host& host, Settings& said) {
  static const std::vector<std::string> names = {"slots",     "ssh",       "address",
                                                 "max_slots", "max-slots", "price"};
  std::size_t equal = word.find('=');
  std::string name(word.substr(0, equal));
  std::string value(equal == std::string_view::npos ? "" : word.substr(equal + 1));
  if (equal == std::string_view::npos ||
      std::find(names.begin(), names.end(), name) == names.end()) {
    throw ConfigError("{}: \"{}\": expected slots=N, ssh=NAME, address=ADDRESS or price=PRICE{}",
                      place, word, did_you_mean(name, names));
  }
  if (name == "slots") {
    said.slots = to_slots(value, place);
  } else if (name == "ssh") {
    check_name(value, place);
    host.ssh_name = value;
    host.by_ssh = true;
  } else if (name == "address") {
    check_address(value, place);
    host.address = value;
  } else if (name == "price") {
    host.price = to_price(value, place);
  } else {
    said.most_slots = to_number(value, place);
  }
}

Host parse_line(std::string_view line, const std::string& place) {
  std::vector<std::string_view> words = split_words(line);
  Host host = detail::parse_host(words[0], place);
  Settings said;
  for (std::size_t i = 1; i < words.size(); ++i) apply_setting(words[i], place, host, said);
  if (said.slots && host.slots != 0) {
    throw ConfigError("{}: slots twice: {} and slots={}", place, words[0], *said.slots);
  }
  if (said.slots) host.slots = *said.slots;
  if (said.most_slots && host.slots > *said.most_slots) {
    throw ConfigError("{}: {} slots, but max_slots={}", place, host.slots, *said.most_slots);
  }
  return host;
}

void check_exists(const fs::path& path, const char* option) {
  if (fs::exists(path) && !fs::is_directory(path)) return;
  throw ConfigError("{} {}: no such file", option, path.string());
}

std::vector<Entry> parse_file(const std::string& path) {
  check_exists(path, "--hosts");
  std::vector<Entry> out;
  for_each_line(path, [&](std::string_view line, int64_t number) {
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) return;
    std::string place = fmt::format("{}:{}", path, number);
    out.push_back({parse_line(line, place), place});
  });
  return out;
}

std::vector<Entry> entries_of(std::vector<Host> instances, const std::string& place) {
  std::vector<Entry> out;
  for (Host& host : instances) {
    check_name(host.name, place);
    check_name(host.ssh_name, place);
    if (!host.address.empty()) check_address(host.address, place);
    host.slots = 0;
    out.push_back({std::move(host), place});
  }
  return out;
}

std::vector<Entry> parse_instances(const std::string& path) {
  check_exists(path, "--instances");
  return entries_of(read_instances(path), path);
}

std::vector<Entry> ask_for_instances(const std::string& command) {
  constexpr std::chrono::seconds kLimit{60};
  const std::string place = fmt::format("the output of `{}`", command);
  try {
    return entries_of(instances_in(output_of_command(command, kLimit), place), place);
  } catch (Error& error) {
    error.add_context("asking --instances-command for the hosts");
    throw;
  }
}

void refuse_duplicates(const std::vector<Entry>& entries) {
  std::map<std::string, const Entry*> seen;
  for (const Entry& entry : entries) {
    std::vector<std::string> names = {entry.host.name, entry.host.ssh_name};
    if (!entry.host.address.empty()) names.push_back(entry.host.address);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) {
      auto [other, is_new] = seen.emplace(name, &entry);
      if (is_new) continue;
      ConfigError error("{}: {} appears twice", entry.place, name);
      if (other->second->place != entry.place) {
        error.set_cause("it stands at " + other->second->place + " already");
      }
      error.set_advice("one entry with the number of its ranks, as " + entry.host.name + ":2");
      throw error;
    }
  }
}

// A host's own number counts unless --ranks-per-host replaces it for all.
void choose_slots(std::vector<Entry>& entries, const HostOptions& options) {
  const int ranks_per_host = options.ranks_per_host;
  const bool from_words = !options.hosts.empty();
  if (ranks_per_host < 0 || ranks_per_host > kMostSlots) {
    throw ConfigError("--ranks-per-host {}: expected a number from 1 to {}", ranks_per_host,
                      kMostSlots);
  }
  for (auto& [host, place] : entries) {
    if (from_words && ranks_per_host > 0 && host.slots != 0 && host.slots != ranks_per_host) {
      throw ConfigError("-H gives {} {} ranks, --ranks-per-host {}: give one of them", host.name,
                        slots_text(host.slots), ranks_per_host);
    }
    if (ranks_per_host > 0) host.slots = ranks_per_host;
    if (host.slots == 0) host.slots = options.otherwise_slots;
  }
}

}  // namespace

std::string slots_text(int slots) { return slots == kAutoSlots ? "auto" : std::to_string(slots); }

bool HostList::has_auto() const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const Host& host) { return host.slots == kAutoSlots; });
}

int HostList::ranks() const {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.slots; });
}

Host detail::parse_host(std::string_view text, const std::string& place) {
  if (text.empty()) throw ConfigError("{}: a name of a host is missing", place);
  std::string_view whole = text, user, slots;
  std::size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    user = text.substr(0, at + 1);
    text.remove_prefix(at + 1);
  }
  if (text.starts_with('[')) {
    std::size_t end = text.find(']');
    std::string_view rest = end == std::string_view::npos ? "?" : text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') {
      throw ConfigError("{}: \"{}\": expected [ADDRESS] or [ADDRESS]:SLOTS", place, whole);
    }
    slots = rest;
    text = text.substr(1, end - 1);
    check_address(std::string(text), place);
  } else if (std::count(text.begin(), text.end(), ':') > 1) {
    throw ConfigError("{}: \"{}\": an IPv6 address stands in brackets: [{}]:2", place, whole, text);
  } else if (std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    slots = text.substr(colon);
    text = text.substr(0, colon);
  }
  check_name(text, place);
  if (!user.empty()) check_name(user.substr(0, user.size() - 1), place);
  Host host{.name = std::string(text),
            .ssh_name = fmt::format("{}{}", user, text),
            .slots = slots.empty() ? 0 : to_slots(slots.substr(1), place),
            .by_ssh = !user.empty()};
  if (is_address(host.name)) host.address = host.name;
  return host;
}

HostList read_hosts(const HostOptions& options) {
  std::vector<std::string> given;
  if (!options.hosts.empty()) given.push_back("-H");
  if (!options.hosts_file.empty()) given.push_back("--hosts");
  if (!options.instances.empty()) given.push_back("--instances");
  if (!options.command.empty()) given.push_back("--instances-command");
  if (given.size() > 1) {
    throw ConfigError("{} name the hosts: give one of them", join(given, " and "));
  }
  HostList list;
  std::vector<Entry> entries;
  if (!options.hosts.empty()) {
    list.source = "-H";
    entries = parse_words(options.hosts);
  } else if (!options.hosts_file.empty()) {
    list.source = options.hosts_file;
    entries = parse_file(options.hosts_file);
  } else if (!options.instances.empty()) {
    list.source = options.instances;
    entries = parse_instances(options.instances);
  } else if (!options.command.empty()) {
    list.source = "--instances-command";
    entries = ask_for_instances(options.command);
  } else {
    return list;
  }
  if (entries.empty()) throw ConfigError("{}: no hosts in it", list.source);
  if (entries.size() > kMostHosts) {
    throw ConfigError("{}: {} hosts; at most {}", list.source, entries.size(), kMostHosts);
  }
  refuse_duplicates(entries);
  choose_slots(entries, options);
  for (Entry& entry : entries) list.hosts.push_back(std::move(entry.host));
  return list;
}

}  // namespace lockstep

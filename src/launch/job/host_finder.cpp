#include "launch/job/host_finder.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostPrinted = 16 << 20, kMostSaid = 64 << 10;

using HostJson = nlohmann::ordered_json;

}  // namespace

std::string hosts_text(const std::vector<Host>& hosts) {
  HostJson list = HostJson::array();
  for (const Host& host : hosts) {
    list.push_back({{"name", host.name}, {"ssh", host.ssh_name}, {"address", host.address}});
  }
  return list.dump();
}

std::vector<Host> hosts_of_text(const std::string& text) {
  try {
    std::vector<Host> out;
    for (const HostJson& entry : HostJson::parse(text)) {
      out.push_back({.name = entry.at("name").get<std::string>(),
                     .ssh_name = entry.at("ssh").get<std::string>(),
                     .address = entry.at("address").get<std::string>()});
    }
    return out;
  } catch (const HostJson::exception& error) {
    throw DataError("hosts in an unknown form: {}", error.what());
  }
}

std::vector<Host> unknown_hosts(const std::vector<Host>& listed, const std::vector<Host>& known) {
  std::set<std::string> places;
  for (const Host& host : known) places.insert({host.ssh_name, host.address});
  places.erase("");
  std::vector<Host> out;
  for (const Host& host : listed) {
    if (!places.contains(host.ssh_name) && !places.contains(host.address)) out.push_back(host);
  }
  return out;
}

std::vector<HostReplacement> match_seats(const std::vector<Host>& seats,
                                         const std::vector<int>& missing,
                                         const std::vector<Host>& found) {
  std::set<std::string> taken;  // names of machines that stay or come
  std::vector<int> free = missing;
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const bool gone = std::find(free.begin(), free.end(), static_cast<int>(i)) != free.end();
    if (!gone) taken.insert(seats[i].name);
  }
  std::vector<HostReplacement> out;
  for (const bool by_name : {true, false}) {
    for (const Host& host : found) {
      const auto seat = by_name ? std::find_if(free.begin(), free.end(),
                                               [&](int i) { return seats[i].name == host.name; })
                                : free.begin();
      if (seat == free.end() || taken.contains(host.name)) continue;
      out.push_back({.seat = *seat, .host = host});
      taken.insert(host.name);
      free.erase(seat);
    }
  }
  return out;
}

HostFinder::~HostFinder() {
  if (process_ < 0) return;
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void HostFinder::complain(const std::string& what) {
  if (what == complaint_) return;
  complaint_ = what;
  say_(what);
}

void HostFinder::ask(const std::vector<Host>& known, Clock::time_point now) {
  if (!is_on() || process_ >= 0 || now < next_) return;
  next_ = now + options_.every;
  try {
    const Descriptor input = memory_file(hosts_text(known));
    output_ = memory_file("");
    errors_ = memory_file("");
    process_ = start_process(options_.words, input.get(), output_.get(), errors_.get());
  } catch (const Error& error) {
    complain(fmt::format("nobody could be asked for other hosts: {}", error.what()));
  }
}

std::vector<Host> HostFinder::collect() {
  int status = 0;
  if (process_ < 0 || ::waitpid(process_, &status, WNOHANG) != process_) return {};
  process_ = -1;
  next_ = Clock::now() + options_.every;
  const std::string said(trim(text_of_memory_file(errors_.get(), kMostSaid)));
  if (status != 0) {
    complain("asking for other hosts: " + (said.empty() ? "no answer" : said));
    return {};
  }
  try {
    std::vector<Host> out = hosts_of_text(text_of_memory_file(output_.get(), kMostPrinted));
    complaint_.clear();
    if (!out.empty() && !said.empty()) say_(said);  // what was sent there
    return out;
  } catch (const Error& error) {
    complain(error.what());
    return {};
  }
}

std::optional<Clock::time_point> HostFinder::next_deadline() const {
  if (!is_on() || process_ >= 0) return std::nullopt;
  return next_;
}

}  // namespace lockstep

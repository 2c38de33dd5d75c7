#include <map>

#include "base/table.h"
#include "base/text.h"
#include "commands/hosts/cluster.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

// Prints lines KEY=VALUE. Where a host lacks a command, the value is empty.
constexpr const char* kFacts = R"sh(
echo "system=$(. /etc/os-release 2>/dev/null; echo "${PRETTY_NAME:-$(uname -s)}")"
echo "machine=$(uname -m)"
echo "cores=$(nproc 2>/dev/null)"
while read -r name value unit; do
  case $name in MemTotal:) echo "memory=$value" ;; MemAvailable:) echo "available=$value" ;; esac
done < /proc/meminfo
set -- $(df -Pk "$HOME" | tail -n 1)
echo "disk=$4"
echo "gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')"
)sh";

using Facts = std::map<std::string, std::string>;

// Converts "lockstep 0.1.0" to "lockstep=0.1.0".
std::string as_facts(std::string lines) {
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = lines.find('\n', at);
    std::size_t blank = lines.find(' ', at);
    if (blank < end) lines[blank] = '=';
  }
  return lines;
}

Facts read_facts(const std::string& output) {
  Facts facts;
  for (const std::string& line : split(output, '\n')) {
    std::size_t equal = line.find('=');
    if (equal != std::string::npos) facts[line.substr(0, equal)] = line.substr(equal + 1);
  }
  return facts;
}

std::string kilobytes(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? "-" : short_bytes(value * 1024);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string version_of(const char* name, const Facts& facts) {
  auto found = facts.find(name);
  return found == facts.end() || found->second.empty() ? "unknown" : found->second;
}

// Returns why a job cannot start on this host; empty when it can.
std::string trouble_with(const Facts& theirs) {
  static const Facts ours = read_facts(as_facts(version_text()));
  if (!theirs.count("lockstep")) return "no lockstep that runs";
  for (const char* name : {"lockstep", "libtorch"}) {
    std::string version = version_of(name, theirs);
    if (version == version_of(name, ours)) continue;
    return fmt::format("{} {} there, {} here", name, version, version_of(name, ours));
  }
  return "";
}

std::vector<std::string> row_of(std::size_t index, const Host& host, const RemoteResult& result) {
  std::vector<std::string> row = {std::to_string(index), host.name};
  if (result.status != 0) {
    row.insert(row.end(), {"failed", "-", "-", "-", "-", "-", "-", "-", "-"});
    return row;
  }
  Facts facts = read_facts(result.output);
  row.insert(row.end(), {trouble_with(facts).empty() ? "ok" : "failed",
                         fmt::format("{:.2f} s", result.seconds), or_dash(facts["lockstep"]),
                         or_dash(facts["libtorch"]), facts["system"] + " " + facts["machine"],
                         or_dash(facts["cores"]), facts["gpus"],
                         kilobytes(facts["available"]) + " of " + kilobytes(facts["memory"]),
                         kilobytes(facts["disk"])});
  return row;
}

// The versions come from `lockstep --version`, as "NAME VERSION" lines.
std::string check_text(const RemoteOptions& options) {
  return fmt::format(
      "{}\n( {} ) 2>/dev/null | sed -n -e 's/^lockstep /lockstep=/p' -e 's/^libtorch "
      "/libtorch=/p'\n:",
      kFacts, lockstep_text(options, {"--version"}));
}

}  // namespace

int cluster_check(const Arguments& arguments) {
  HostArguments given;
  int limit_seconds = 30;
  CommandLine app(
      "Logs in on all hosts at once and says what is there: versions, system, cores, memory, "
      "disk.\n"
      "Exit code 4 when a host cannot be reached or has no lockstep or another version.",
      "lockstep cluster check");
  add_host_options(app, given);
  app.add_option("--limit", limit_seconds, "seconds for each host (default 30)")->range(1, 3600);
  if (!app.parse(arguments)) return kExitOk;
  HostList list = require_hosts(given);
  auto results = run_on_hosts(list, given.remote, check_text(given.remote),
                              std::chrono::seconds(limit_seconds));
  std::vector<std::vector<std::string>> rows = {{"index", "name", "state", "login", "lockstep",
                                                 "libtorch", "system", "cores", "GPUs",
                                                 "memory free", "disk free"}};
  std::vector<std::string> troubles;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Host& host = list.hosts[i];
    rows.push_back(row_of(i, host, results[i]));
    if (results[i].status != 0) {
      troubles.push_back(remote_error(host, results[i].status, results[i].error).describe());
    } else if (std::string trouble = trouble_with(read_facts(results[i].output));
               !trouble.empty()) {
      troubles.push_back(host.name + ": " + trouble + "\n  try: lockstep cluster setup");
    }
  }
  fmt::print("{}", format_table(rows, "r  r   rrrr"));
  if (troubles.empty()) return kExitOk;
  throw MachineError("{} of {} hosts are not ready\n{}", troubles.size(), results.size(),
                     join(troubles, "\n"));
}

}  // namespace lockstep

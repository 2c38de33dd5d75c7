#include "launch/hosts/host_setup.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/host_chain.h"
#include "launch/hosts/parcel.h"
#include "launch/hosts/setup_scripts.h"

namespace lockstep {

namespace {

std::string own_machine() {
  utsname names{};
  ::uname(&names);
  return fmt::format("{} {}", names.sysname, names.machine);
}

constexpr std::string_view kBegins = "lockstep begins\n";

// Leaves out what a login shell prints before our text runs.
std::string after_beginning(const std::string& output) {
  const std::size_t at = output.find(kBegins);
  return at == std::string::npos ? output : output.substr(at + kBegins.size());
}

std::string scripted(const std::string& text) {
  return fmt::format("echo '{}'\n{}{}", trim(kBegins), detail::kCommon, text);
}

std::string sent(const HostSetup::Answer& answer, int64_t bytes) {
  return fmt::format("{} in {:.1f} s{}", short_bytes(static_cast<double>(bytes)), answer.seconds,
                     answer.from == nullptr ? "" : ", from " + answer.from->name);
}

}  // namespace

Mount parse_mount(const std::string& text) {
  auto refuse = [&] {
    ConfigError error("--mount {}: expected SERVER:/EXPORT:/MOUNTPOINT[:TYPE[:OPTIONS]]", text);
    error.set_advice("as 10.0.0.9:/data:/data, fs-1.efs.example.com:/:/data:nfs4:nfsvers=4.1,hard");
    return error;
  };
  if (text.find_first_of(" \t\n#\\") != std::string::npos) throw refuse();
  bool device = text.starts_with('/');
  std::size_t server = device ? 0 : text.find(":/");
  if (server == std::string::npos || (!device && server == 0)) throw refuse();
  std::size_t end = text.find(":/", server + 1);
  if (end == std::string::npos) throw refuse();
  Mount mount{.source = text.substr(0, end)};
  std::vector<std::string> rest = split(text.substr(end + 1), ':');
  mount.point = rest[0];
  while (mount.point.size() > 1 && mount.point.ends_with('/')) mount.point.pop_back();
  if (mount.point == "/" || rest.size() > 3) throw refuse();
  if (rest.size() > 1) mount.type = rest[1];
  if (rest.size() > 2) mount.options = rest[2];
  if (mount.type.empty() || mount.options.empty()) throw refuse();
  return mount;
}

Copy parse_copy(const std::string& text) {
  const std::size_t root = text.rfind(":/"), home = text.rfind(":~/");
  const std::size_t colon =
      home != std::string::npos && (root == std::string::npos || home > root) ? home : root;
  Copy copy{.path = text.substr(0, colon)};
  copy.destination = colon == std::string::npos
                         ? fs::absolute(copy.path).lexically_normal().string()
                         : text.substr(colon + 1);
  while (copy.destination.size() > 1 && copy.destination.ends_with('/')) {
    copy.destination.pop_back();
  }
  if (!fs::exists(copy.path)) throw ConfigError("--copy {}: no such file or folder", copy.path);
  return copy;
}

int64_t HostSetup::Answer::free_bytes() const {
  constexpr std::string_view kName = "free ";
  for (const std::string& line : split(output, '\n')) {
    if (!line.starts_with(kName)) continue;
    int64_t kilobytes = -1;
    std::from_chars(line.data() + kName.size(), line.data() + line.size(), kilobytes);
    return kilobytes < 0 ? -1 : std::min(kilobytes, INT64_MAX / 1024) * 1024;
  }
  return -1;
}

HostSetup::HostSetup(const HostList& hosts, Options options)
    : hosts_(hosts), options_(std::move(options)) {
  if (options_.log_folder.empty()) return;
  std::error_code failed;
  fs::create_directories(options_.log_folder, failed);
  if (failed) throw MachineError("--log-dir {}: {}", options_.log_folder, failed.message());
}

void HostSetup::log(const Host& host, std::string_view text) const {
  if (options_.log_folder.empty() || text.empty()) return;
  fs::path path = fs::path(options_.log_folder) / (host.name + ".log");
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "ae"), std::fclose);
  bool written = file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (written && text.back() != '\n') written = std::fputc('\n', file.get()) == '\n';
  if (!written) throw MachineError("{}: cannot be written", path.string());
}

void HostSetup::note(const Host& host, const std::string& line) const {
  log(host, line);
  if (options_.on_note) options_.on_note(host, line);
}

void HostSetup::fail(const Host& host, MachineError error) {
  log(host, "error: " + error.describe());
  if (options_.on_note) options_.on_note(host, "failed");
  failures_.push_back({&host, std::move(error)});
}

std::vector<HostSetup::Step> HostSetup::on_all(const std::string& text,
                                               const std::vector<std::string>& feeder) const {
  std::vector<Step> steps;
  for (const Host& host : hosts_.hosts) {
    bool failed = std::any_of(failures_.begin(), failures_.end(),
                              [&](const Failure& failure) { return failure.host == &host; });
    if (!failed) steps.push_back({&host, text, feeder});
  }
  return steps;
}

// Returns the answers of the hosts that succeeded.
std::vector<HostSetup::Answer> HostSetup::run(const std::string& what,
                                              const std::vector<Step>& steps) {
  std::vector<RemoteJob> jobs;
  for (const Step& step : steps) {
    jobs.push_back(
        {.host = step.host, .shell_text = scripted(step.shell_text), .feeder = step.feeder});
    log(*step.host, "== " + what);
  }
  std::vector<Answer> answers;
  for (RemoteResult& result : run_jobs(jobs, options_.remote, {})) {
    log(*result.host, result.output);
    log(*result.host, result.error);
    if (result.status == 0) {
      answers.push_back({.host = result.host,
                         .output = after_beginning(result.output),
                         .seconds = result.seconds});
    } else {
      MachineError error = remote_error(*result.host, result.status, result.error);
      error.add_context(what);
      fail(*result.host, std::move(error));
    }
  }
  return answers;
}

// Returns the answers of the hosts that succeeded.
std::vector<HostSetup::Answer> HostSetup::deliver(const Delivery& delivery) {
  std::vector<Answer> answers = deliver_in_chain(delivery);
  std::vector<Step> rest;
  for (const Host* host : delivery.hosts) {
    const auto of_host = [&](const auto& one) { return one.host == host; };
    if (std::none_of(answers.begin(), answers.end(), of_host) &&
        std::none_of(failures_.begin(), failures_.end(), of_host)) {
      rest.push_back({host, delivery.shell_text, delivery.feeder});
    }
  }
  for (Answer& answer : run(delivery.what, rest)) answers.push_back(std::move(answer));
  return answers;
}

// Leaves out hosts that the others do not reach, and those that failed behind another that did:
// what came to them may have been broken off.
std::vector<HostSetup::Answer> HostSetup::deliver_in_chain(const Delivery& delivery) {
  constexpr int64_t kWorthIt = 4 << 20;  // bytes: the keys cost some round trips
  std::vector<const Host*> hosts;
  for (const Host* host : delivery.hosts) {
    if (!is_this_machine(*host)) hosts.push_back(host);
  }
  std::vector<Answer> answers;
  if (hosts.size() < 2 || delivery.bytes < kWorthIt) return answers;
  const auto start = std::chrono::steady_clock::now();
  HostChain chain(hosts, options_.remote);
  const std::vector<ChainEnd> ends =
      chain.send(detail::kCommon + delivery.shell_text, delivery.feeder);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bool broken = false;
  for (const ChainEnd& end : ends) {
    log(*end.host, "== " + delivery.what + (end.from ? ", from " + end.from->name : ""));
    log(*end.host, end.output);
    log(*end.host, end.error);
    if (end.reached && end.status == 0) {
      answers.push_back({end.host, end.output, end.from, seconds});
      continue;
    }
    if (!end.reached) {
      if (end.from != nullptr) {
        note(*end.host, fmt::format("{} does not reach it: sent from here", end.from->name));
      }
    } else if (broken) {
      note(*end.host, fmt::format("failed behind {}: sent from here", end.from->name));
    } else {
      MachineError error = remote_error(*end.host, end.status, end.error);
      error.add_context(delivery.what);
      fail(*end.host, std::move(error));
    }
    broken = true;
  }
  return answers;
}

bool HostSetup::has_room(const Host& host, int64_t free_bytes, int64_t bytes) {
  constexpr int64_t kSpare = 64 << 20;  // a full disk stops more than us
  if (free_bytes < 0 || free_bytes >= bytes + kSpare) return true;
  MachineError error("{}: its disk has {} free, {} are needed", host.name,
                     short_bytes(static_cast<double>(free_bytes)),
                     short_bytes(static_cast<double>(bytes + kSpare)));
  error.set_advice("lockstep cluster setup --prune removes old versions of lockstep");
  fail(host, std::move(error));
  return false;
}

std::vector<HostSetup::Answer> HostSetup::ask(const std::string& what,
                                              const std::string& shell_text,
                                              const std::vector<std::string>& feeder) {
  return run(what, on_all(shell_text, feeder));
}

void HostSetup::throw_failures() const {
  if (failures_.empty()) return;
  std::vector<std::string> texts;
  for (const Failure& failure : failures_) texts.push_back(failure.error.describe());
  throw MachineError("{} of {} hosts could not be made ready\n{}", texts.size(),
                     hosts_.hosts.size(), join(texts, "\n"));
}

void HostSetup::install_packages(const std::vector<std::string>& packages) {
  std::string text = shell_assignment("packages", join(packages, " ")) + detail::kPackages;
  for (const Answer& answer : run("installing packages", on_all(text, {}))) {
    note(*answer.host, answer.output.empty() ? "packages: all there"
                                             : "packages: " + std::string(trim(answer.output)));
  }
}

void HostSetup::install_program(const ProgramFiles& program) {
  Parcel parcel(program.pieces);
  std::map<std::string, int64_t> sizes;
  for (const Piece& piece : program.pieces) {
    parcel.add(piece.sha256, piece.source);
    sizes[piece.sha256] = piece.bytes;
  }
  const std::string head = shell_assignment("hash", program.hash) +
                           shell_assignment("machine", own_machine()) +
                           shell_assignment("libc", program.libc);
  std::set<std::string> missing;  // on any of the hosts
  std::vector<const Answer*> lacking;
  const std::vector<Answer> found = run("looking for lockstep " + program.hash,
                                        on_all(head + detail::kAskProgram, parcel.list()));
  for (const Answer& answer : found) {
    if (answer.output.find("installed\n") != std::string::npos) {
      note(*answer.host, fmt::format("lockstep {}: there already", program.hash));
      continue;
    }
    if (answer.output.find("switched\n") != std::string::npos) {
      note(*answer.host, fmt::format("lockstep {}: switched to", program.hash));
      continue;
    }
    for (const std::string& line : split(answer.output, '\n')) {
      if (line.starts_with("missing ")) missing.insert(line.substr(8));
    }
    lacking.push_back(&answer);
  }
  Delivery delivery{.what = "copying lockstep " + program.hash,
                    .shell_text = head + detail::kInstallProgram,
                    .feeder = parcel.stream({missing.begin(), missing.end()})};
  for (const std::string& content : missing) delivery.bytes += sizes.at(content);
  for (const Answer* answer : lacking) {
    if (has_room(*answer->host, answer->free_bytes(), delivery.bytes)) {
      delivery.hosts.push_back(answer->host);
    }
  }
  for (const Answer& answer : deliver(delivery)) {
    note(*answer.host,
         fmt::format("lockstep {}: copied {}", program.hash, sent(answer, delivery.bytes)));
  }
}

void HostSetup::copy(const Copy& copy) {
  KnownHashes hashes;
  Placement placement{.name = copy.destination,
                      .folder = copy.destination,
                      .pieces = files_below(copy.path, hashes)};
  if (!fs::is_directory(copy.path)) {
    const fs::path to = copy.destination;
    placement.pieces[0].path = to.filename().string();
    placement.folder = to.parent_path().string();
  }
  put(placement);
}

void HostSetup::put(const Placement& placement) {
  std::set<std::string> paths;
  for (const Piece& piece : placement.pieces) paths.insert(piece.path);
  const Parcel all(placement.pieces);
  std::vector<Lack> lacks;
  for (const Answer& answer :
       ask("looking at " + placement.name,
           shell_assignment("to", placement.folder) + detail::kAskFiles, all.list())) {
    Lack lack{answer.host, {}, answer.free_bytes()};
    for (const std::string& line : split(answer.output, '\n')) {
      const std::string path = line.substr(0, line.rfind(": FAILED"));
      if (!line.ends_with(": OK") && paths.count(path) > 0) lack.paths.insert(path);
    }
    lacks.push_back(std::move(lack));
  }
  send(placement, lacks);
}

void HostSetup::send(const Placement& placement, const std::vector<Lack>& lacks) {
  std::set<std::string> missing;  // on any of the hosts
  for (const Lack& lack : lacks) missing.insert(lack.paths.begin(), lack.paths.end());
  Delivery delivery{.what = "copying " + placement.name,
                    .shell_text = shell_assignment("to", placement.folder) + detail::kPutFiles,
                    .feeder = {}};
  std::vector<Piece> changed;
  for (const Piece& piece : placement.pieces) {
    if (missing.count(piece.path) == 0) continue;
    changed.push_back(piece);
    delivery.bytes += piece.bytes;
  }
  Parcel parcel(changed);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    names.push_back(std::to_string(i));
    parcel.add(names.back(), changed[i].source);
  }
  delivery.feeder = parcel.stream(names);
  for (const Lack& lack : lacks) {
    if (lack.paths.empty()) {
      note(*lack.host,
           fmt::format("{}: {} files, none changed", placement.name, placement.pieces.size()));
    } else if (has_room(*lack.host, lack.free_bytes, delivery.bytes)) {
      delivery.hosts.push_back(lack.host);
    }
  }
  for (const Answer& answer : deliver(delivery)) {
    note(*answer.host, fmt::format("{}: {} of {} files copied, {}", placement.name, changed.size(),
                                   placement.pieces.size(), sent(answer, delivery.bytes)));
  }
}

void HostSetup::mount(const Mount& mount) {
  std::string text = shell_assignment("source", mount.source) +
                     shell_assignment("point", mount.point) + shell_assignment("type", mount.type) +
                     shell_assignment("options", mount.options) + detail::kMount;
  for (const Answer& answer : run("mounting " + mount.point, on_all(text, {}))) {
    bool added = answer.output.find("added") != std::string::npos;
    bool mounted = answer.output.find("mounted") != std::string::npos;
    note(*answer.host, fmt::format("{}: {}, {}", mount.point,
                                   added ? "line added to /etc/fstab" : "in /etc/fstab already",
                                   mounted ? "mounted" : "mounted already"));
  }
}

void HostSetup::prune() {
  for (const Answer& answer : run("removing old versions", on_all(detail::kPrune, {}))) {
    auto removed = std::count(answer.output.begin(), answer.output.end(), '\n');
    note(*answer.host, fmt::format("{} old versions removed", removed));
  }
}

}  // namespace lockstep

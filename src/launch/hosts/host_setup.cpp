#include "launch/hosts/host_setup.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
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

std::string sender(const Host* from) { return from == nullptr ? "" : ", from " + from->name; }

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
  std::size_t colon = text.rfind(":/");
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
    jobs.push_back({.host = step.host, .shell_text = step.shell_text, .feeder = step.feeder});
    log(*step.host, "== " + what);
  }
  std::vector<Answer> answers;
  for (RemoteResult& result : run_jobs(jobs, options_.remote, {})) {
    log(*result.host, result.output);
    log(*result.host, result.error);
    if (result.status == 0) {
      answers.push_back({result.host, std::move(result.output)});
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

// Leaves out hosts that the others do not reach.
std::vector<HostSetup::Answer> HostSetup::deliver_in_chain(const Delivery& delivery) {
  constexpr int64_t kWorthIt = 4 << 20;  // bytes: the keys cost some round trips
  std::vector<const Host*> hosts;
  for (const Host* host : delivery.hosts) {
    if (!is_this_machine(*host)) hosts.push_back(host);
  }
  std::vector<Answer> answers;
  if (hosts.size() < 2 || delivery.bytes < kWorthIt) return answers;
  HostChain chain(hosts, options_.remote);
  for (const ChainEnd& end : chain.send(delivery.shell_text, delivery.feeder)) {
    log(*end.host, "== " + delivery.what + (end.from ? ", from " + end.from->name : ""));
    log(*end.host, end.output);
    log(*end.host, end.error);
    if (!end.reached) {
      if (end.from != nullptr) {
        note(*end.host, fmt::format("{} does not reach it: sent from here", end.from->name));
      }
    } else if (end.status == 0) {
      answers.push_back({end.host, end.output, end.from});
    } else {
      MachineError error = remote_error(*end.host, end.status, end.error);
      error.add_context(delivery.what);
      fail(*end.host, std::move(error));
    }
  }
  return answers;
}

bool HostSetup::has_room(const Answer& answer, int64_t bytes) {
  constexpr int64_t kSpare = 64 << 20;  // a full disk stops more than us
  std::size_t start = answer.output.find("free ");
  int64_t kilobytes = 0;
  if (start == std::string::npos) return true;
  const char* text = answer.output.data();
  auto [end, failed] = std::from_chars(text + start + 5, text + answer.output.size(), kilobytes);
  if (failed != std::errc() || kilobytes * 1024 >= bytes + kSpare) return true;
  MachineError error("{}: its disk has {} free, {} are needed", answer.host->name,
                     short_bytes(static_cast<double>(kilobytes) * 1024),
                     short_bytes(static_cast<double>(bytes + kSpare)));
  error.set_advice("lockstep cluster setup --prune removes old versions of lockstep");
  fail(*answer.host, std::move(error));
  return false;
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
  std::string head =
      shell_assignment("hash", program.hash) + shell_assignment("machine", own_machine());
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
    if (has_room(*answer, delivery.bytes)) delivery.hosts.push_back(answer->host);
  }
  const std::string bytes = short_bytes(static_cast<double>(delivery.bytes));
  for (const Answer& answer : deliver(delivery)) {
    note(*answer.host,
         fmt::format("lockstep {}: copied {}{}", program.hash, bytes, sender(answer.from)));
  }
}

void HostSetup::copy(const Copy& copy) {
  std::vector<Piece> pieces = files_below(copy.path);
  std::string to = copy.destination;
  if (!fs::is_directory(copy.path)) {
    pieces[0].path = fs::path(to).filename().string();
    to = fs::path(to).parent_path().string();
  }
  copy_pieces(copy, to, pieces);
}

// Brings the files to the folder `to` of all hosts.
void HostSetup::copy_pieces(const Copy& copy, const std::string& to,
                            const std::vector<Piece>& pieces) {
  Parcel all(pieces);
  std::map<std::string, const Piece*> by_path;
  for (const Piece& piece : pieces) by_path[piece.path] = &piece;
  std::string head = shell_assignment("to", to);
  std::map<std::string, const Piece*> missing;  // on any of the hosts
  std::vector<const Answer*> lacking;
  const std::vector<Answer> found =
      run("looking at " + copy.destination, on_all(head + detail::kAskFiles, all.list()));
  for (const Answer& answer : found) {
    bool lacks = false;
    for (const std::string& line : split(answer.output, '\n')) {
      auto piece = by_path.find(line.substr(0, line.rfind(": FAILED")));
      if (line.ends_with(": OK") || piece == by_path.end()) continue;
      missing.insert(*piece);
      lacks = true;
    }
    if (lacks) {
      lacking.push_back(&answer);
    } else {
      note(*answer.host,
           fmt::format("{}: {} files, none changed", copy.destination, pieces.size()));
    }
  }
  std::vector<Piece> changed;
  Delivery delivery{
      .what = "copying " + copy.destination, .shell_text = head + detail::kPutFiles, .feeder = {}};
  for (const auto& [path, piece] : missing) {
    changed.push_back(*piece);
    delivery.bytes += piece->bytes;
  }
  Parcel parcel(changed);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    names.push_back(std::to_string(i));
    parcel.add(names.back(), changed[i].source);
  }
  delivery.feeder = parcel.stream(names);
  for (const Answer* answer : lacking) {
    if (has_room(*answer, delivery.bytes)) delivery.hosts.push_back(answer->host);
  }
  const std::string done =
      fmt::format("{}: {} of {} files copied, {}", copy.destination, changed.size(), pieces.size(),
                  short_bytes(static_cast<double>(delivery.bytes)));
  for (const Answer& answer : deliver(delivery)) note(*answer.host, done + sender(answer.from));
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

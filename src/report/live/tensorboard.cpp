#include "report/live/tensorboard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"
#include "report/run/sweep_cell.h"

namespace lockstep {

namespace {

constexpr int kUsualPort = 6006, kTries = 10;

bool has_events(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return true;
  }
  return false;
}

[[noreturn]] void no_such_folder(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(absolute.parent_path(), ignored)) {
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  throw ConfigError("{}: no such folder{}", path.string(),
                    did_you_mean(absolute.filename().string(), names));
}

// Returns the last part of a path, even of "runs/mine/".
std::string last_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// Returns the event folders that `path` stands for.
std::vector<EventFolder> folders_of(const fs::path& path) {
  if (!fs::is_directory(path)) no_such_folder(path);
  if (has_events(path)) return {{last_name(path), path}};
  if (is_sweep(path)) {
    std::vector<EventFolder> out;
    const SweepFolder sweep{path};
    for (const CellRecord& cell : read_cells(sweep)) {
      const fs::path events = sweep.run(cell.name) / "events";
      if (has_events(events)) out.push_back({cell.name, events});
    }
    if (out.empty()) throw DataError("{}: no cell of this sweep has events yet", path.string());
    return out;
  }
  const fs::path events = path / "events";
  if (has_events(events)) return {{last_name(path), events}};
  if (!fs::exists(path / "config.toml")) {
    ConfigError error("{}: holds no run (no config.toml)", path.string());
    error.set_advice("the folder that `lockstep train` or `lockstep sweep` wrote");
    throw error;
  }
  throw DataError("{}: no events yet: {} has no file events.out.tfevents.*", path.string(),
                  events.string());
}

std::string unique_name(const std::string& name, const std::set<std::string>& taken) {
  std::string out = name;
  for (int number = 2; taken.count(out) > 0; ++number) out = fmt::format("{}-{}", name, number);
  return out;
}

bool is_free(int port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return true;  // TensorBoard will report the problem
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool is_program(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::vector<EventFolder> event_folders(const std::vector<fs::path>& given) {
  std::vector<EventFolder> out;
  std::set<std::string> names;
  std::set<fs::path> seen;
  for (const fs::path& path : given) {
    for (const EventFolder& found : folders_of(path)) {
      const fs::path real = fs::canonical(found.path);
      if (!seen.insert(real).second) continue;
      out.push_back({unique_name(found.name, names), real});
      names.insert(out.back().name);
    }
  }
  return out;
}

void link_event_folders(const std::vector<EventFolder>& folders, const fs::path& tree) {
  for (const EventFolder& folder : folders) {
    std::error_code failed;
    fs::create_directory_symlink(folder.path, tree / folder.name, failed);
    if (!failed) continue;
    throw MachineError("{}: cannot be made: {}", (tree / folder.name).string(), failed.message());
  }
}

std::vector<std::string> find_tensorboard() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    const fs::path program = fs::path(folder) / "tensorboard";
    if (!folder.empty() && is_program(program)) return {program.string()};
  }
  std::vector<fs::path> environments;
  const char* active = std::getenv("VIRTUAL_ENV");
  if (active != nullptr && *active != '\0') environments.emplace_back(active);
  std::error_code ignored;
  const fs::path own = fs::read_symlink("/proc/self/exe", ignored);
  environments.push_back(own.parent_path().parent_path() / ".venv");
  for (const fs::path& environment : environments) {
    const fs::path program = environment / "bin" / "tensorboard";
    if (is_program(program)) return {program.string()};
  }
  const char* asks =
      "python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec(\"tensorboard\") is "
      "None)' "
      ">/dev/null 2>&1";
  if (std::system(asks) == 0) return {"python3", "-m", "tensorboard.main"};
  return {};
}

int choose_port(std::optional<int> wanted) {
  if (wanted) {
    if (is_free(*wanted)) return *wanted;
    MachineError error("port {} is in use", *wanted);
    error.set_advice("another --port, or none: the next free one is taken then");
    throw error;
  }
  for (int port = kUsualPort; port < kUsualPort + kTries; ++port) {
    if (is_free(port)) return port;
  }
  throw MachineError("ports {} to {} are in use: say which with --port", kUsualPort,
                     kUsualPort + kTries - 1);
}

std::string tunnel_line(int port) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const char* user = std::getenv("USER");
  return fmt::format("ssh -L {0}:localhost:{0} {1}{2}", port,
                     user == nullptr || *user == '\0' ? "" : std::string(user) + "@",
                     host[0] == '\0' ? "this-host" : host.data());
}

}  // namespace lockstep

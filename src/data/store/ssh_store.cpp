// What runs on the other side is /bin/sh with cat, tail, wc and find; sha256sum where it has one.
#include "data/store/ssh_store.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/text.h"

extern char** environ;

namespace lockstep {

namespace {

constexpr int kAbsent = 66, kRefused = 77, kDamaged = 74;  // what the scripts exit with
constexpr int kSshFailed = 255;
constexpr std::chrono::milliseconds kLook{20};

std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// One file as the input or output of a process.
struct Channel {
  fs::path path = "/dev/null";
  int flags = O_RDONLY;
};

class SshStore : public ObjectStore {
 public:
  SshStore(const StoreAddress& address, const StoreOptions& options)
      : address_(address), options_(options) {}

  void put(const std::string& key, const fs::path& file, const std::string& sha256) override {
    const std::string target = path_of(key), part = in_quotes(target + ".part");
    std::string script = fmt::format(
        "mkdir -p {} || exit {}; cat > {} || {{ rm -f {}; exit 1; }}; "
        "[ $(wc -c < {}) -eq {} ] || exit {}; ",
        in_quotes(fs::path(target).parent_path().string()), kRefused, part, part, part,
        fs::file_size(file), kDamaged);
    if (!sha256.empty()) {
      script += fmt::format(
          "if command -v sha256sum >/dev/null; then [ \"$(sha256sum < {} | cut -c 1-64)\" = {} ] "
          "|| "
          "exit {}; fi; ",
          part, sha256, kDamaged);
    }
    script += fmt::format("mv -f {} {}", part, in_quotes(target));
    check(run(script, {file, O_RDONLY}, {}), key);
  }

  bool get(const std::string& key, const fs::path& file, int64_t offset) override {
    const std::string path = in_quotes(path_of(key));
    const End end =
        run(fmt::format("[ -f {} ] || exit {}; tail -c +{} {}", path, kAbsent, offset + 1, path),
            {}, {file, O_WRONLY | O_CREAT | O_APPEND});
    if (end.code == kAbsent) return false;
    check(end, key);
    return true;
  }

  std::vector<StoredObject> list(const std::string& folder) override {
    const std::string top = folder.empty() ? "." : "./" + folder;
    TemporaryFolder here;
    const fs::path file = here.path() / "list";
    const End end = run(
        fmt::format("cd {} 2>/dev/null || exit {}; [ -d {} ] || exit 0; find {} -type f | while "
                    "IFS= read -r f; do printf '%s %s\\n' \"$(wc -c < \"$f\")\" \"$f\"; done",
                    in_quotes(address_.path), kAbsent, in_quotes(top), in_quotes(top)),
        {}, {file, O_WRONLY | O_CREAT});
    std::vector<StoredObject> out;
    if (end.code == kAbsent) return out;
    check(end, top);
    for (const std::string& line : read_lines(file)) {
      const std::string_view text = trim(line);
      const std::size_t name = text.find(" ./");
      if (name == std::string_view::npos) continue;
      out.push_back({std::string(text.substr(name + 3)), std::atoll(std::string(text).c_str())});
    }
    return out;
  }

  void remove(const std::string& key) override {
    const fs::path path = path_of(key);
    check(
        run(fmt::format("rm -f {} || exit {}; rmdir {} 2>/dev/null; true", in_quotes(path.string()),
                        kRefused, in_quotes(path.parent_path().string())),
            {}, {}),
        key);
  }

 private:
  struct End {
    int code = 0;
    std::string said;
  };

  std::string path_of(const std::string& key) const { return address_.path + "/" + key; }

  std::vector<std::string> words(const std::string& script) const {
    std::vector<std::string> out{"ssh",
                                 "-o",
                                 "BatchMode=yes",
                                 "-o",
                                 "ConnectTimeout=15",
                                 "-o",
                                 "ServerAliveInterval=5",
                                 "-o",
                                 "ServerAliveCountMax=4"};
    if (address_.port) out.insert(out.end(), {"-p", std::to_string(*address_.port)});
    out.insert(out.end(), {"--", address_.host, "exec /bin/sh -c " + in_quotes(script)});
    return out;
  }

  // Runs ssh in a process group of its own: a Ctrl-C for the run is not one for it.
  End run(const std::string& script, const Channel& input, const Channel& output) const {
    TemporaryFolder folder;
    const fs::path errors = folder.path() / "said";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input.path.c_str(), O_RDONLY, 0);
    const int flags = output.flags == O_RDONLY ? O_WRONLY : output.flags;
    posix_spawn_file_actions_addopen(&actions, 1, output.path.c_str(), flags, 0666);
    posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<std::string> command = words(script);
    std::vector<char*> pointers;
    for (std::string& word : command) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t process = -1;
    const int failed =
        ::posix_spawnp(&process, "ssh", &actions, &attributes, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0)
      throw ConfigError("{}: ssh cannot be started: {}", address_.text, std::strerror(failed));
    End end{.code = wait_for(process)};
    if (fs::exists(errors)) end.said = std::string(trim(read_file(errors)));
    return end;
  }

  int wait_for(pid_t process) const {
    int status = 0;
    bool ended = false;
    while (::waitpid(process, &status, WNOHANG) == 0) {
      if (!ended && options_.cancel != nullptr && options_.cancel->load()) {
        ended = true;
        ::kill(process, SIGKILL);
      }
      std::this_thread::sleep_for(kLook);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  void check(const End& end, const std::string& key) const {
    if (end.code == 0) return;
    const std::string place = fmt::format("{}/{}", address_.text, key);
    auto says = [&](std::string_view text) { return end.said.find(text) != std::string::npos; };
    if (end.code == kDamaged) {
      throw MachineError("{}: what arrived is not what was sent", place);
    }
    const bool refused = end.code == kRefused || says("Permission denied") ||
                         says("Host key verification failed") || says("Read-only file system") ||
                         says("Could not resolve hostname");
    const std::string last =
        end.said.empty() ? fmt::format("ssh ended with {}", end.code) : end.said;
    if (refused) {
      ConfigError error("{}: cannot be used by ssh", place);
      error.set_cause(last);
      error.set_advice("ssh " + address_.host + " true, which must ask for nothing");
      throw error;
    }
    MachineError error("{}: {}", place,
                       end.code == kSshFailed ? "ssh does not get there" : "cannot be copied");
    error.set_cause(last);
    throw error;
  }

  StoreAddress address_;
  StoreOptions options_;
};

}  // namespace

std::unique_ptr<ObjectStore> open_ssh_store(const StoreAddress& address,
                                            const StoreOptions& options) {
  return std::make_unique<SshStore>(address, options);
}

}  // namespace lockstep

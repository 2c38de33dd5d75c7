#include "netlab/virtual_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "netlab/tap.h"

namespace lockstep {

namespace {

constexpr unsigned long kNamespaces =
    CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;

pid_t clone_process(unsigned long flags) {
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

std::array<Descriptor, 2> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw MachineError("cannot open a pipe: {}", std::strerror(errno));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string read_to_end(int descriptor) {
  std::string text;
  char buffer[512];
  for (;;) {
    ssize_t size = ::read(descriptor, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

// Sets up a host, in its own process, before anything runs there; writes failures to `report`.
struct Boot {
  const VirtualHostOptions& options;
  int report;
  int log;  // of sshd

  [[noreturn]] void fail(const std::string& what) const {
    std::string text = what + ": " + std::strerror(errno);
    (void)!::write(report, text.data(), text.size());
    ::_exit(1);
  }
  void mount(const fs::path& from, const fs::path& to, const char* type, unsigned long flags,
             const std::string& data = "") const {
    if (::mount(from.c_str(), to.c_str(), type, flags, data.c_str()) != 0) {
      fail("cannot mount " + to.string());
    }
  }

  // Where a path of the host is until enter_root().
  fs::path at(const fs::path& path) const {
    return options.root ? path_in_root(*options.root, path) : path;
  }

  void mounts() const {
    mount("", "/", nullptr, MS_REC | MS_PRIVATE);
    if (options.root) mount_root();
    mount("proc", at("/proc"), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    mount("tmpfs", at("/run"), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
    ::mkdir(at("/run/sshd").c_str(), 0755);
    // /sys shows the interfaces of the namespace that mounts it; the control groups in it stay the
    // machine's.
    const fs::path kept = at("/run/cgroup");
    ::mkdir(kept.c_str(), 0755);
    bool groups = ::mount("/sys/fs/cgroup", kept.c_str(), nullptr, MS_BIND | MS_REC, "") == 0;
    mount("sysfs", at("/sys"), "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    if (groups) mount(kept, at("/sys/fs/cgroup"), nullptr, MS_BIND | MS_REC);
    mount(options.etc_hosts, at("/etc/hosts"), nullptr, MS_BIND);
    if (!options.etc_ssh.empty()) mount(options.etc_ssh, at("/etc/ssh"), nullptr, MS_BIND);
    for (const auto& [ours, its] : options.private_folders) {
      std::error_code failed;
      fs::create_directories(at(its), failed);
      if (options.disk_mb > 0) {
        mount("tmpfs", at(its), "tmpfs", MS_NOSUID | MS_NODEV,
              fmt::format("size={}k,mode=755", static_cast<int64_t>(options.disk_mb * 1000)));
      } else {
        mount(ours, at(its), nullptr, MS_BIND);
      }
    }
    if (options.root) enter_root();
  }

  // Devices are the machine's, but for the memory that processes share by name.
  void mount_root() const {
    const fs::path& root = options.root->folder;
    mount(root, root, nullptr, MS_BIND);
    for (const HostOverlay& overlay : options.root->overlays) {
      std::error_code failed;  // what fails here fails below
      fs::create_directories(overlay.target, failed);
      mount("overlay", overlay.target, "overlay", 0, overlay.options);
    }
    mount("/dev", at("/dev"), nullptr, MS_BIND | MS_REC);
    mount("tmpfs", at("/dev/shm"), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  }

  // The host's root becomes /, and the machine's files are out of sight.
  void enter_root() const {
    if (::chdir(options.root->folder.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0 ||
        ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) {
      fail("cannot enter its root " + options.root->folder.string());
    }
  }

  pid_t start_sshd() const {
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(log >= 0 ? log : null, 1);
    ::dup2(log >= 0 ? log : null, 2);
    ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config", nullptr);
    ::_exit(127);
  }
};

// Runs a host's process number 1: sets the host up when told, then only waits.
[[noreturn]] void live(const VirtualHostOptions& options, int go, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "netlab-host");
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  char told = 0;
  if (::read(go, &told, 1) != 1) ::_exit(0);
  constexpr int kReport = 3;  // kept open, like its maker's output, until all is well
  if (report != kReport) ::dup3(report, kReport, O_CLOEXEC);
  ::close_range(kReport + 1, ~0U, 0);
  Boot boot{options, kReport,
            ::open(options.sshd_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  boot.mounts();
  if (::sethostname(options.name.c_str(), options.name.size()) != 0) boot.fail("sethostname");
  if (options.sshd && boot.start_sshd() < 0) boot.fail("cannot start sshd");
  ::signal(SIGCHLD, SIG_IGN);  // the kernel reaps the orphans
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3; ++i) ::dup2(null, i);
  ::close_range(kReport, ~0U, 0);  // closes the report
  for (;;) ::pause();
}

void join_cpu_group(const fs::path& group) {
  if (group.empty()) return;
  int file = ::open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  (void)!::write(file, "0", 1);  // 0 stands for the writing process
  ::close(file);
}

[[noreturn]] void run_command(const HostCommand& command, const std::vector<char*>& words,
                              const std::vector<char*>& environment, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (command.new_group) ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  // Copies each twice, so that none is overwritten before it has been copied.
  int from[3] = {command.input, command.output, command.error}, copies[3];
  for (int i = 0; i < 3; ++i) copies[i] = ::fcntl(from[i], F_DUPFD_CLOEXEC, 3);
  for (int i = 0; i < 3; ++i) ::dup2(copies[i], i);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) {
    int reason = errno;
    (void)!::write(report, &reason, sizeof reason);
    ::_exit(127);
  }
  ::execvpe(words[0], words.data(), environment.data());
  int reason = errno;
  (void)!::write(report, &reason, sizeof reason);
  ::_exit(127);
}

// Runs the parent of a host's program, which only waits for the program's end.
[[noreturn]] void bury(pid_t pid) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::close_range(0, ~0U, 0);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> out = added;
  auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=') + 1); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name = name_of(*entry);
    auto same = [&](const std::string& other) { return name_of(other) == name; };
    if (std::none_of(added.begin(), added.end(), same)) out.emplace_back(*entry);
  }
  return out;
}

}  // namespace

HostProcess start_in_host(const HostNamespaces& host, const HostCommand& command) {
  if (command.words.empty()) throw ConfigError("no command to run");
  std::vector<std::string> words = command.words, settings = environment_with(command.environment);
  std::vector<char*> argv = pointers(words), environment = pointers(settings);
  std::vector<Descriptor> spaces;
  for (const char* space : {"net", "uts", "ipc", "mnt", "pid"}) {
    std::string path = fmt::format("/proc/{}/ns/{}", host.init, space);
    spaces.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!spaces.back().open()) {
      throw MachineError("cannot open {}: {}", path, std::strerror(errno));
    }
  }
  std::string folder = !command.folder.empty() ? command.folder.string()
                       : host.own_files        ? "/"
                                               : fs::current_path().string();
  HostCommand there = command;
  there.folder = folder;
  auto [numbers_end, numbers] = open_pipe();
  auto [report_end, report] = open_pipe();
  pid_t parent = ::fork();
  if (parent < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  if (parent == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "netlab-parent");
    join_cpu_group(host.cpu_group);
    for (const Descriptor& space : spaces) {
      if (::setns(space.get(), 0) != 0) ::_exit(1);
    }
    pid_t pid = ::fork();
    if (pid == 0) run_command(there, argv, environment, report.get());
    (void)!::write(numbers.get(), &pid, sizeof pid);
    bury(pid);
  }
  numbers.close();
  report.close();
  pid_t pid = -1;
  int reason = 0;
  if (::read(numbers_end.get(), &pid, sizeof pid) != sizeof pid || pid < 0) {
    ::waitpid(parent, nullptr, 0);
    throw MachineError("cannot enter a virtual host: is it off?");
  }
  if (::read(report_end.get(), &reason, sizeof reason) == sizeof reason) {
    ::waitpid(parent, nullptr, 0);
    throw ConfigError("cannot run {} in {}: {}", words[0], folder, std::strerror(reason));
  }
  return {parent, pid};
}

VirtualHost::VirtualHost(VirtualHostOptions options) : options_(std::move(options)) {
  auto [go_end, go] = open_pipe();
  auto [report, report_end] = open_pipe();
  init_ = clone_process(kNamespaces);
  if (init_ < 0) {
    int reason = errno;
    MachineError error("cannot make the namespaces of a virtual host: {}", std::strerror(reason));
    if (reason == EPERM) error.set_advice("run it as root (sudo), or in a privileged container");
    throw error;
  }
  if (init_ == 0) {
    go.close();
    report.close();
    live(options_, go_end.get(), report_end.get());
  }
  go_ = std::move(go);
  report_ = std::move(report);
  network_ =
      Descriptor(::open(fmt::format("/proc/{}/ns/net", init_).c_str(), O_RDONLY | O_CLOEXEC));
}

VirtualHost::~VirtualHost() {
  if (init_ <= 0) return;
  ::kill(init_, SIGKILL);
  while (::waitpid(init_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void VirtualHost::boot() {
  if (!options_.cpu_group.empty()) {
    std::ofstream(options_.cpu_group / "cgroup.procs") << init_ << std::flush;
  }
  {
    InNetworkNamespace there(network_.get());
    bring_up("lo");
    apply_sysctl();
  }
  (void)!::write(go_.get(), "g", 1);
  std::string wrong = read_to_end(report_.get());
  if (!wrong.empty()) throw MachineError("virtual host {}: {}", options_.name, wrong);
  if (options_.sshd) wait_for_sshd();
}

void VirtualHost::apply_sysctl() const {
  // As Debian and Ubuntu have it, whatever this machine is set to; where it has none, its own.
  std::ofstream("/proc/sys/net/ipv4/tcp_congestion_control") << "cubic";
  for (const std::string& setting : options_.sysctl) {
    std::size_t equals = setting.find('=');
    std::string name = setting.substr(0, equals);
    std::replace(name.begin(), name.end(), '.', '/');
    std::ofstream file("/proc/sys/" + name);
    if (equals == std::string::npos || !(file << setting.substr(equals + 1) << std::flush)) {
      throw ConfigError(
          "hosts.sysctl: cannot set {}: expected name=value, as in "
          "net.ipv4.tcp_sack=0",
          setting);
    }
  }
}

void VirtualHost::wait_for_sshd() const {
  InNetworkNamespace there(network_.get());
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(22);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  MachineError error("sshd does not answer in the virtual host {}", options_.name);
  std::error_code none;
  if (fs::exists(options_.sshd_log, none)) error.set_cause(read_file(options_.sshd_log));
  throw error;
}

CpuGroup::CpuGroup(const std::string& name, double cores) {
  constexpr int64_t kPeriod = 20000;  // microseconds; short, so that a step is slowed evenly
  auto quota = std::max<int64_t>(1000, static_cast<int64_t>(cores * kPeriod));
  auto write = [&](const fs::path& file, const std::string& text) {
    std::ofstream out(file);
    return static_cast<bool>(out << text << std::flush);
  };
  const fs::path base = "/sys/fs/cgroup";
  bool done = false;
  if (fs::exists(base / "cpu" / "cpu.cfs_quota_us") || fs::exists(base / "cpu" / "cgroup.procs")) {
    path_ = base / "cpu" / name;
    std::error_code failed;
    fs::create_directory(path_, failed);
    done = write(path_ / "cpu.cfs_period_us", std::to_string(kPeriod)) &&
           write(path_ / "cpu.cfs_quota_us", std::to_string(quota));
  } else {
    path_ = base / name;
    std::error_code failed;
    (void)write(base / "cgroup.subtree_control", "+cpu");
    fs::create_directory(path_, failed);
    done = write(path_ / "cpu.max", fmt::format("{} {}", quota, kPeriod));
  }
  if (done) return;
  std::error_code ignored;
  fs::remove(path_, ignored);
  throw MachineError("cannot limit processor time: no cpu group can be made in {}", base.string());
}

CpuGroup::~CpuGroup() {
  std::error_code ignored;  // the group is ours alone; one still in use stays
  fs::remove(path_, ignored);
}

}  // namespace lockstep

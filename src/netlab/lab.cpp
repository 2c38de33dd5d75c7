#include "netlab/lab.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "netlab/lab_folder.h"
#include "netlab/ssh_files.h"
#include "netlab/tap.h"

namespace lockstep {

Lab::Lab(LabConfig config, fs::path folder, fs::path program)
    : config_(std::move(config)), folder_(std::move(folder)), program_(std::move(program)) {
  if (::geteuid() != 0) {
    MachineError error("virtual hosts need root, to make namespaces and interfaces");
    error.set_advice("sudo lockstep netlab ...");
    throw error;
  }
  machines_.resize(static_cast<std::size_t>(config_.size()));
  std::vector<fs::path> groups;
  for (int i = 0; i + 1 < config_.size(); ++i) {
    double cores = config_.hosts.cpu;
    if (const double own = config_.host(i).cpu; own >= 0) cores = own;
    if (cores <= 0) continue;
    auto& cpu = machines_[static_cast<std::size_t>(i)].cpu;
    cpu = std::make_unique<CpuGroup>(fmt::format("lockstep-netlab-{}-{}", ::getpid(), i), cores);
    groups.push_back(cpu->path());
  }
  prepare_folder();
  cleanup_ = start_cleanup(temporary_ ? folder_ : fs::path(), groups);
  set_up_network();
  for (int i = 0; i < config_.size(); ++i) power_on(i);
  control_ = listen_in(folder_);
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { serve(); });
}

Lab::~Lab() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  for (int i = 0; i < config_.size(); ++i) power_off(i);
  std::error_code ignored;
  fs::remove(folder_ / kLabSocket, ignored);
  fs::remove(folder_ / kLabState, ignored);
  if (temporary_) fs::remove_all(folder_, ignored);
}

int Lab::index(const std::string& host) const {
  int found = config_.index_of(host);
  if (found >= 0) return found;
  throw ConfigError("no host \"{}\"{} in this lab ({})", host,
                    did_you_mean(host, config_.hosts.names), join(config_.hosts.names, ", "));
}

void Lab::prepare_folder() {
  temporary_ = folder_.empty();
  if (temporary_) {
    std::string pattern = (fs::temp_directory_path() / "lockstep-netlab-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw MachineError("cannot make {}: {}", pattern, std::strerror(errno));
    }
    folder_ = pattern;
  }
  fs::create_directories(folder_);
  folder_ = fs::canonical(folder_);
  if (lab_runs_in(folder_)) throw ConfigError("a lab runs in {} already", folder_.string());
  std::vector<SshHost> ssh_hosts;
  for (int i = 0; i < config_.size(); ++i) {
    bool is_control = i + 1 == config_.size();
    std::string name = is_control ? kControlHost : config_.hosts.names[static_cast<std::size_t>(i)];
    fs::path own = folder_ / "hosts" / name;
    fs::create_directories(own);
    std::string text = "127.0.0.1 localhost\n";
    if (config_.hosts.decoy && !is_control) text += "127.0.1.1 " + name + "\n";
    for (int other = 0; other < config_.size(); ++other) {
      bool other_control = other + 1 == config_.size();
      if (other == i && config_.hosts.decoy && !is_control) continue;
      if (other != i && config_.hosts.own_files() && !is_control) continue;
      int network = other_control && config_.separate_control() ? kControl : kData;
      text +=
          address_in(network, other) + " " +
          (other_control ? kControlHost : config_.hosts.names[static_cast<std::size_t>(other)]) +
          "\n";
    }
    write_file(own / "etc_hosts", text);
    if (!is_control) ssh_hosts.push_back({name, ssh_address(name), config_.host(i).user});
  }
  if (config_.hosts.sshd) write_ssh_files({folder_, ssh_hosts, program_});
}

HostRootOptions Lab::root_options(int host) const {
  constexpr int kFirstUser = 2000;
  const LabHost own = config_.host(host);
  HostRootOptions out;
  out.folder = folder_ / "hosts" / config_.hosts.names[static_cast<std::size_t>(host)];
  out.system = own.system;
  out.user = own.user;
  if (own.user != "root") {
    out.user_id = kFirstUser + host;
    out.home = own.home.empty() ? fs::path("/home") / own.user : fs::path(own.home);
  }
  if (config_.hosts.sshd) out.authorized_key = read_file(folder_ / "ssh/key.pub");
  for (const std::string& entry : config_.hosts.contents) {
    const std::size_t colon = entry.rfind(":/");
    out.contents.emplace_back(entry.substr(0, colon), entry.substr(colon + 1));
  }
  return out;
}

fs::path Lab::path_on_this_machine(const std::string& host, const fs::path& path) const {
  if (!config_.hosts.own_files() || host == kControlHost) return path;
  return folder_ / "hosts" / config_.hosts.names[static_cast<std::size_t>(index(host))] / "root" /
         path.relative_path();
}

void Lab::power_on(int host) {
  std::lock_guard lock(mutex_);
  Machine& machine = machines_[static_cast<std::size_t>(host)];
  if (machine.host) return;
  bool is_control = host + 1 == config_.size();
  VirtualHostOptions options;
  options.name = is_control ? kControlHost : config_.hosts.names[static_cast<std::size_t>(host)];
  fs::path own = folder_ / "hosts" / options.name;
  options.etc_hosts = own / "etc_hosts";
  const bool own_files = config_.hosts.own_files() && !is_control;
  if (config_.hosts.sshd) options.etc_ssh = folder_ / (own_files ? "ssh_server" : "ssh");
  options.sshd = config_.hosts.sshd && !is_control;
  options.sshd_log = own / "sshd.log";
  options.disk_mb = config_.hosts.disk_mb;
  options.sysctl = config_.hosts.sysctl;
  if (machine.cpu) options.cpu_group = machine.cpu->path();
  for (const std::string& folder : config_.hosts.private_folders) {
    fs::path ours = own / "private" / fs::path(folder).relative_path();
    fs::create_directories(ours);
    options.private_folders.emplace_back(ours, folder);
  }
  if (own_files) options.root = make_host_root(root_options(host));
  machine.host = std::make_unique<VirtualHost>(options);
  try {
    if (config_.hosts.decoy && !is_control) {
      InNetworkNamespace there(machine.host->network_namespace());
      machine.decoy = open_tap({.name = "docker0",
                                .mac = {0x02, 0x42, 0, 0, 0, 1},
                                .address = "172.17.0.1",
                                .prefix = 16});
    }
    if (!is_control || !config_.separate_control()) plug_in(host, kData);
    if (config_.separate_control()) plug_in(host, kControl);
    machine.host->boot();
  } catch (Error& error) {
    power_off(host);
    throw error.add_context("starting the virtual host " + options.name);
  }
  write_state();
}

void Lab::power_off(int host) {
  std::lock_guard lock(mutex_);
  Machine& machine = machines_[static_cast<std::size_t>(host)];
  // The network goes first: a host that loses its power cannot send any goodbyes.
  for (auto& network : networks_) network->detach(host);
  machine.decoy.close();
  machine.host.reset();
}

void Lab::write_state() const {
  std::vector<LabStateHost> hosts;
  for (int i = 0; i < config_.size(); ++i) {
    const Machine& machine = machines_[static_cast<std::size_t>(i)];
    if (!machine.host) continue;
    bool is_control = i + 1 == config_.size();
    hosts.push_back({is_control ? kControlHost : config_.hosts.names[static_cast<std::size_t>(i)],
                     machine.host->namespaces()});
  }
  write_lab_state(folder_, hosts);
}

HostProcess Lab::start(const std::string& host, const HostCommand& command) {
  HostNamespaces spaces;
  {
    std::lock_guard lock(mutex_);
    const Machine& machine = machines_[static_cast<std::size_t>(index(host))];
    if (!machine.host) throw MachineError("the virtual host {} is off", host);
    spaces = machine.host->namespaces();
  }
  HostCommand there = command;
  there.environment.push_back(fmt::format("{}={}", kLabVariable, folder_.string()));
  return start_in_host(spaces, there);
}

int Lab::network_namespace(const std::string& host) const {
  const Machine& machine = machines_[static_cast<std::size_t>(index(host))];
  if (!machine.host) throw MachineError("the virtual host {} is off", host);
  return machine.host->network_namespace();
}

PortCounts Lab::counts(const std::string& host) { return networks_[kData]->counts(index(host)); }

void Lab::plan(double seconds, std::function<void()> work) {
  auto due = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  {
    std::lock_guard lock(mutex_);
    planned_.push_back({due, std::move(work)});
  }
  uint64_t one = 1;
  if (wake_.open()) (void)!::write(wake_.get(), &one, sizeof one);
}

void Lab::start_schedule() {
  for (const LabEvent& event : config_.events) {
    plan(event.at, [this, event] {
      log_info("netlab: {} s: {} {}", event.at, event.action, join(event.hosts, ", "));
      apply(event);
    });
  }
}

void Lab::apply(const LabEvent& event) {
  if (event.action != "power-off" && event.action != "power-on") {
    change_paths(event, event.action, event.lasts);
    return;
  }
  std::lock_guard lock(mutex_);
  bool off = event.action == "power-off";
  for (const std::string& name : event.hosts) {
    int host = index(name);
    off ? power_off(host) : power_on(host);
    if (event.lasts > 0) plan(event.lasts, [=, this] { off ? power_on(host) : power_off(host); });
  }
  write_state();
}

void Lab::serve() {
  for (;;) {
    std::function<void()> work;
    int wait_ms = -1;
    {
      std::lock_guard lock(mutex_);
      if (stop_) return;
      auto first =
          std::min_element(planned_.begin(), planned_.end(),
                           [](const Planned& a, const Planned& b) { return a.due < b.due; });
      if (first != planned_.end()) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(first->due - Clock::now());
        wait_ms = static_cast<int>(std::max<int64_t>(0, left.count()));
        if (wait_ms == 0) {
          work = std::move(first->work);
          planned_.erase(first);
        }
      }
    }
    if (work) {
      try {
        work();
      } catch (const Error& error) {
        log_warning("netlab: {}", error.describe());
      }
      continue;
    }
    pollfd wanted[2] = {{control_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(wanted, 2, wait_ms);
    uint64_t count;
    if (wanted[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
    if (wanted[0].revents != 0) answer_one();
  }
}

void Lab::answer_one() {
  answer_request(control_.get(), [this](const std::string& request) { return handle(request); });
}

std::string Lab::handle(const std::string& request) {
  try {
    apply(read_lab_event(request, config_));
    return "";
  } catch (const Error& error) {
    return error.describe();
  }
}

}  // namespace lockstep

// Makes virtual hosts that have nothing in common (docs/netlab.md#hosts-that-share-nothing): each
// has a root of its own, another user and another home. Like rented machines after `lockstep
// cluster setup` they have the program in ~/.lockstep/current; ~/work is to work in.
//
//   HostsApart hosts;                            // a and b
//   hosts.put_all(tiny.path(), "work");          // configuration and corpus
//   auto launch = hosts.start("control", {LOCKSTEP_PROGRAM, "launch", "-H", "a:2,b:2", "--cwd",
//                                         "~/work", "--", "train", "tiny.toml"});
//   read_file(hosts.file("a", "work/runs/x/metrics.jsonl"));
#pragma once

#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/virtual_hosts.h"

namespace lockstep {

enum class ApartProgram {
  kNone,    // the hosts have never seen lockstep
  kLinked,  // ~/.lockstep/current is this build: nothing is copied
  kSetUp,   // ~/.lockstep is as `lockstep cluster setup` leaves it
};

struct ApartOptions {
  std::vector<std::string> names = {"a", "b"};
  std::string network;                      // lines of [network]
  std::string hosts;                        // further lines of [hosts]
  std::map<std::string, std::string> host;  // lines of one host, by its name
  std::string more;                         // further sections
  ApartProgram program = ApartProgram::kLinked;
};

namespace detail {

// The folder of the libraries of torch that the program loads.
inline std::string torch_libraries() {
  const fs::path computing =
      fs::canonical(LOCKSTEP_PROGRAM).parent_path() / "liblockstep_computing.so";
  const std::string text = run_program("ldd", computing.string()).output;
  const std::size_t end = text.find("/libtorch_cpu.so (");
  if (end == std::string::npos) {
    throw std::runtime_error("no libtorch_cpu.so of " + computing.string());
  }
  const std::size_t begin = text.rfind(" /", end) + 1;
  return text.substr(begin, end - begin);
}

struct ApartUser {
  const char* name;
  const char* home;
};
inline constexpr ApartUser kApartUsers[] = {{"ana", "/home/ana"},
                                            {"ben", "/data/people/ben"},
                                            {"cleo", "/srv/users/cleo"},
                                            {"dora", "/home/staff/dora"},
                                            {"eva", "/home/eva"}};

// A ~/.lockstep after `cluster setup`, half a gigabyte: made once in a process, and then what all
// hosts begin with.
inline fs::path set_up_lockstep() {
  static const TemporaryFolder home;
  static const ProgramResult made =
      run_lockstep("cluster setup -H localhost", "HOME=" + home.path().string());
  if (made.exit_code != 0) throw std::runtime_error(made.errors);
  return home.path() / ".lockstep";
}

// Folders of this machine and where the hosts have them, as /HERE:/THERE.
inline std::vector<std::string> apart_contents(const ApartOptions& options) {
  std::vector<std::string> out;
  if (options.program == ApartProgram::kLinked) {
    out.push_back(fs::canonical(LOCKSTEP_PROGRAM).parent_path().string() + ":/opt/lockstep/bin");
    out.push_back(torch_libraries() + ":/opt/lockstep/lib");
  } else if (options.program == ApartProgram::kSetUp) {
    for (std::size_t i = 0; i < options.names.size(); ++i) {
      out.push_back(
          fmt::format("{}:{}/.lockstep", set_up_lockstep().string(), kApartUsers[i].home));
    }
  }
  return out;
}

inline std::string apart_lab(const ApartOptions& options) {
  std::string out = "[network]\n" + options.network + "\n[hosts]\nfiles = 'own'\n";
  out += fmt::format("names = ['{}']\n", fmt::join(options.names, "', '"));
  const std::vector<std::string> contents = apart_contents(options);
  if (!contents.empty()) out += fmt::format("contents = ['{}']\n", fmt::join(contents, "', '"));
  out += options.hosts + "\n";
  for (std::size_t i = 0; i < options.names.size(); ++i) {
    const ApartUser& user = kApartUsers[i];
    const auto own = options.host.find(options.names[i]);
    out += fmt::format("[[host]]\nname = '{}'\nuser = '{}'\nhome = '{}'\n{}\n", options.names[i],
                       user.name, user.home, own == options.host.end() ? "" : own->second);
  }
  return out + options.more;
}

}  // namespace detail

class HostsApart : public VirtualHosts {
 public:
  static constexpr const char* kProgram = "/opt/lockstep/bin/lockstep";  // on the hosts

  // REQUIRES as many users above as there are hosts.
  explicit HostsApart(const ApartOptions& options = {})
      : VirtualHosts(detail::apart_lab(options)), names_(options.names) {
    for (const std::string& name : names_) {
      make_folder(name, "work");
      if (options.program != ApartProgram::kLinked) continue;
      make_folder(name, ".lockstep/current");
      fs::create_symlink(kProgram, file(name, ".lockstep/current/lockstep"));
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  std::string user(const std::string& host) const { return user_of(host).name; }
  fs::path home(const std::string& host) const { return user_of(host).home; }
  // Where ~/PATH of a host lies on this machine.
  fs::path file(const std::string& host, const fs::path& path) const {
    return lab().path_on_this_machine(host, home(host) / path);
  }
  // Copies a file or folder of this machine to ~/PATH of a host, or of all.
  void put(const std::string& host, const fs::path& from, const fs::path& path) {
    make_folder(host, path.parent_path());
    fs::copy(from, file(host, path),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    give(host, path);
  }
  void put_all(const fs::path& from, const fs::path& path) {
    for (const std::string& name : names_) put(name, from, path);
  }
  void put_text(const std::string& host, const fs::path& path, const std::string& text) {
    make_folder(host, path.parent_path());
    write_file(file(host, path), text);
    give(host, path);
  }
  // Runs a shell command as the host's user, in ~/work.
  std::pair<int, std::string> run_as_user(
      const std::string& host, const std::string& shell,
      std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    auto program = start_as_user(host, shell);
    const int code = program->wait(limit);
    return {code, program->output()};
  }
  std::unique_ptr<HostProgram> start_as_user(const std::string& host, const std::string& shell,
                                             std::vector<std::string> environment = {}) {
    environment.push_back("HOME=" + home(host).string());
    return start(host,
                 {"setpriv", "--reuid", user(host), "--regid", user(host), "--clear-groups",
                  "/bin/sh", "-c", "cd ~/work && " + shell},
                 std::move(environment));
  }

 private:
  const detail::ApartUser& user_of(const std::string& host) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == host) return detail::kApartUsers[i];
    }
    throw std::runtime_error("no host " + host);
  }
  void make_folder(const std::string& host, const fs::path& path) {
    fs::path so_far;
    for (const fs::path& part : path) {
      so_far /= part;
      if (fs::create_directory(file(host, so_far))) give(host, so_far);
    }
  }
  // Makes the host's user the owner of all of it.
  void give(const std::string& host, const fs::path& path) {
    struct stat owner {};
    ::stat(file(host, "").c_str(), &owner);
    const fs::path top = file(host, path);
    const auto own = [&](const fs::path& one) {
      if (::lchown(one.c_str(), owner.st_uid, owner.st_gid) != 0) {
        throw std::runtime_error("cannot give " + one.string());
      }
    };
    own(top);
    if (!fs::is_directory(top) || fs::is_symlink(top)) return;
    for (const auto& entry : fs::recursive_directory_iterator(top)) own(entry.path());
  }

  std::vector<std::string> names_;
};

}  // namespace lockstep

// Sets hosts up over ssh: the program in ~/.lockstep, files, a shared file system. Every step runs
// on all hosts at once and changes only what needs changing. A failed step leaves the host as it
// was: what arrives is checked and put in place by renaming. What several hosts lack goes from host
// to host (launch/hosts/host_chain.h), so that this machine's line carries it once.
//
// ~/.lockstep/files/SHA256      contents, shared by all versions through hard links
//   ~/.lockstep/HASH/             bin/lockstep, lib/*.so: one version, named by its contents
//   ~/.lockstep/current -> HASH   what lockstep_text starts
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/hosts/program_files.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// SERVER:/EXPORT:/MOUNTPOINT[:TYPE[:OPTIONS]], or a device's path in place of SERVER:/EXPORT.
struct Mount {
  std::string source, point;
  std::string type = "nfs", options = "hard,_netdev,nofail";
};
Mount parse_mount(const std::string& text);  // throws ConfigError

// PATH[:DESTINATION]; the destination is absolute or begins with ~/, by default PATH made absolute.
struct Copy {
  std::string path, destination;
};
Copy parse_copy(const std::string& text);  // throws ConfigError
// Likewise, of a folder of prepared data; throws ConfigError when it has no manifest.json.
Copy parse_share(const std::string& text);

// Files that belong in one folder of all hosts.
struct Placement {
  std::string name;    // for messages
  std::string folder;  // absolute, or below each host's home: "~/lockstep/nmt"
  std::vector<Piece> pieces;
};

class HostSetup {
 public:
  struct Options {
    RemoteOptions remote;
    std::string log_folder;  // appends to NAME.log of each host there; empty: no logs
    std::function<void(const Host& host, std::string_view line)> on_note;  // told what was done
  };
  // `hosts` must outlive it. Throws MachineError when the folder for logs cannot be made.
  HostSetup(const HostList& hosts, Options options);

  // Each step continues on the hosts that have not failed; it throws only for local errors.
  void install_packages(
      const std::vector<std::string>& packages);  // by apt-get, as root or sudo -n
  void install_program(const ProgramFiles& program);
  void copy(const Copy& copy);
  // Brings prepared data in parts: of its large files each to one host in turn, the rest to all.
  // Each byte leaves this machine once. Throws DataError for a damaged manifest.
  void copy_share(const Copy& copy);
  void mount(const Mount& mount);
  void prune();  // removes all versions but the current one

  // What a host printed.
  struct Answer {
    const Host* host;
    std::string output;
    const Host* from = nullptr;  // the host that sent it what it lacked; null: this machine
    double seconds = 0;

    int64_t free_bytes() const;  // of "free KILOBYTES", a line of the output; below 0: none
  };
  // Runs shell text that reads what `feeder`, a command of this machine, prints. Returns the
  // answers of the hosts that succeeded.
  std::vector<Answer> ask(const std::string& what, const std::string& shell_text,
                          const std::vector<std::string>& feeder);
  // The paths of a placement that a host lacks.
  struct Lack {
    const Host* host;
    std::set<std::string> paths;
    int64_t free_bytes = -1;  // of its disk; below 0: unknown
  };
  // Puts files in place. Each of the hosts gets what any of them lacks.
  void send(const Placement& placement, const std::vector<Lack>& lacks);
  void note(const Host& host, const std::string& line) const;
  void fail(const Host& host, MachineError error);  // takes it out of the steps that follow

  struct Failure {
    const Host* host;
    MachineError error;
  };
  const std::vector<Failure>& failures() const { return failures_; }  // at most one per host
  // Throws MachineError with all of them if there are any.
  void throw_failures() const;

 private:
  struct Step {
    const Host* host;
    std::string shell_text;
    std::vector<std::string> feeder;
  };
  // A stream of this machine's, and who lacks it.
  struct Delivery {
    std::string what, shell_text;
    std::vector<std::string> feeder;
    std::vector<const Host*> hosts = {};
    int64_t bytes = 0;
  };
  std::vector<Step> on_all(const std::string& text, const std::vector<std::string>& feeder) const;
  std::vector<Answer> run(const std::string& what, const std::vector<Step>& steps);
  void put(const Placement& placement);
  std::vector<Answer> deliver(const Delivery& delivery);
  std::vector<Answer> deliver_in_chain(const Delivery& delivery);
  void log(const Host& host, std::string_view text) const;
  bool has_room(const Host& host, int64_t free_bytes, int64_t bytes);

  const HostList& hosts_;
  Options options_;
  std::vector<Failure> failures_;
};

}  // namespace lockstep

#include "launch/jobs/job_setup.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "dist/rank/token.h"
#include "launch/hosts/host_key.h"
#include "launch/jobs/job_keeper.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kSetupPatience{60};

// Opens to the agents of the job and to the end of it; $job is its id.
constexpr const char* kJobDoor = R"sh(
set -f
set -- $SSH_ORIGINAL_COMMAND
case "$1 $2 $3 $4" in
  "lockstep agent --job $job" | "lockstep job end $job") shift ;;
  *) echo "this key is for job $job of lockstep" >&2; exit 1 ;;
esac
program=$PWD/program
cd || exit 1
exec "$program" "$@"
)sh";

// Uses $p, lockstep's path, and $me.
constexpr const char* kFinishFolder = R"sh(
chmod 700 .
printf '%s\n' "$me" >me
ln -sfn "$(readlink -f "$(command -v "$p")")" program
)sh";

std::string folder_of(const JobRecord& record) { return ".lockstep/jobs/" + record.id; }

std::vector<std::string> errors_of(const std::vector<RemoteResult>& results) {
  std::vector<std::string> out;
  for (const RemoteResult& result : results) {
    if (result.status == 0) continue;
    out.push_back(remote_error(*result.host, result.status, result.error).describe());
  }
  return out;
}

std::vector<std::string> run_text(const std::string& text, const std::vector<const Host*>& hosts,
                                  const RemoteOptions& remote) {
  std::vector<RemoteJob> jobs;
  for (const Host* host : hosts) jobs.push_back({.host = host, .shell_text = text});
  return errors_of(run_jobs(jobs, remote, {.limit = kSetupPatience}));
}

}  // namespace

std::string new_job_id(const std::string& name, const std::vector<std::string>& taken) {
  constexpr std::size_t kLongestName = 24;
  std::string start;
  for (unsigned char c : lower_ascii(name)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) start += static_cast<char>(c);
    if (!plain && !start.empty() && start.back() != '-') start += '-';
    if (start.size() == kLongestName) break;
  }
  while (start.ends_with('-')) start.pop_back();
  if (start.empty()) start = "job";
  for (;;) {
    const std::string id = start + "-" + to_hex(random_token()).substr(0, 4);
    if (std::find(taken.begin(), taken.end(), id) == taken.end()) return id;
  }
}

void refuse_same_run(const JobRecord& record, const std::vector<FoundJob>& jobs) {
  if (record.run_folder.empty()) return;
  for (const FoundJob& job : jobs) {
    if (job.record.id == record.id || job.record.run_folder != record.run_folder) continue;
    if (!job.lives()) continue;
    ConfigError error("job {} trains in {} already, on the same hosts", job.record.id,
                      record.run_folder);
    error.set_advice(fmt::format("another run.folder, or lockstep stop {} first", job.record.id));
    throw error;
  }
}

std::vector<std::string> install_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                     const RemoteOptions& remote) {
  std::vector<std::string> errors;
  std::vector<HostPeer> peers = ask_peers(hosts, remote);
  for (HostPeer& peer : peers) {
    if (const JobHost* host = host_of_job(record, peer.name)) peer.address = host->address;
  }
  HostKeyOptions key{.id = record.id, .folder = folder_of(record), .door = "", .days = kJobKeyDays};
  key.door = shell_assignment("job", record.id) + kJobDoor;
  key.files = {{"job.json", to_text(record)}};
  key.after = find_lockstep_text(remote) + "\n" + kFinishFolder;
  install_host_key(peers, key, remote);
  for (const HostPeer& peer : peers) {
    if (!peer.error.empty()) errors.push_back(peer.error);
  }
  return errors;
}

std::vector<std::string> rewrite_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                     const RemoteOptions& remote) {
  const std::string text =
      fmt::format("cd \"$HOME\"/{} && printf %s {} >job.json.new && mv -f job.json.new job.json",
                  folder_of(record), shell_quote(to_text(record)));
  return run_text(text, hosts, remote);
}

int start_job(const JobRecord& record, const Host& host, const RemoteOptions& remote) {
  const RemoteJob job{.host = &host,
                      .shell_text = fmt::format("exec \"$HOME\"/{}/program job start {}",
                                                folder_of(record), record.id)};
  RemoteRun run;
  run.on_output = [](std::size_t, Stream stream, std::string_view bytes) {
    write_all(stream + 1, bytes);
  };
  const RemoteResult result = run_jobs({job}, remote, run).front();
  constexpr int kSshFailed = 255;
  if (WIFEXITED(result.status) && WEXITSTATUS(result.status) != kSshFailed) {
    return WEXITSTATUS(result.status);
  }
  MachineError error = remote_error(host, result.status, result.error);
  error.add_context("waiting for the launcher there to start its ranks");
  throw error;
}

std::vector<std::string> end_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                 const RemoteOptions& remote) {
  const std::string text = fmt::format("exec \"$HOME\"/{}/program job end {} {} {}",
                                       folder_of(record), record.id, record.term, record.exit_code);
  return run_text(text, hosts, remote);
}

}  // namespace lockstep

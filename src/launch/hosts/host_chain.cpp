#include "launch/hosts/host_chain.h"

#include <chrono>

#include "base/digest.h"
#include "base/text.h"
#include "dist/rank/token.h"
#include "launch/hosts/chain_scripts.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kStepPatience{60};  // for what takes a moment

}  // namespace

HostChain::HostChain(const std::vector<const Host*>& hosts, const RemoteOptions& remote)
    : remote_(remote), id_(to_hex(random_token()).substr(0, 16)) {
  std::vector<HostPeer> asked = ask_peers(hosts, remote);
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i].name = fmt::format("n{}", i);
  const auto failed = [](const HostPeer& peer) { return !peer.error.empty(); };
  std::erase_if(asked, failed);
  if (asked.empty()) return;
  install_host_key(asked, {.id = id_, .folder = ".lockstep/links/" + id_, .door = detail::kDoor},
                   remote);
  std::erase_if(asked, failed);
  peers_ = std::move(asked);
}

HostChain::~HostChain() {
  const std::string remove =
      remove_host_key_text(id_, ".lockstep/links/" + id_) + "rm -rf " + folder();
  std::vector<RemoteJob> jobs;
  for (const HostPeer& peer : peers_) jobs.push_back({.host = peer.host, .shell_text = remove});
  try {
    run_jobs(jobs, remote_, {.limit = kStepPatience});
  } catch (const Error&) {  // after a signal: the keys expire
  }
}

// A host that takes no script takes no further part.
void HostChain::put_scripts(const std::string& text) {
  for (bool changed = true; changed;) {
    std::vector<RemoteJob> jobs;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const std::string next = i + 1 < peers_.size() ? peers_[i + 1].name : "";
      const std::string take =
          shell_assignment("me", peers_[i].name) + shell_assignment("next", next) + detail::kTake;
      jobs.push_back({.host = peers_[i].host,
                      .shell_text = fmt::format("cd {} && printf %s {} >work && printf %s {} >take",
                                                folder(), shell_quote(text), shell_quote(take))});
    }
    const std::vector<RemoteResult> results = run_jobs(jobs, remote_, {.limit = kStepPatience});
    std::vector<HostPeer> left;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (results[i].status == 0) left.push_back(peers_[i]);
    }
    changed = left.size() < peers_.size();
    peers_ = std::move(left);
  }
}

std::vector<ChainEnd> HostChain::send(const std::string& text,
                                      const std::vector<std::string>& feeder) {
  put_scripts(text);
  if (peers_.empty()) return {};
  const RemoteJob job{.host = peers_[0].host,
                      .shell_text = fmt::format("exec sh {}/take", folder()),
                      .feeder = feeder};
  const RemoteResult result = run_jobs({job}, remote_, {})[0];
  std::vector<std::pair<std::string, const Host*>> hosts;
  for (const HostPeer& peer : peers_) hosts.emplace_back(peer.name, peer.host);
  std::vector<ChainEnd> out = detail::read_chain_report(hosts, result.output);
  if (!out[0].reached) {
    out[0].error = remote_error(*job.host, result.status, result.error).describe();
  }
  return out;
}

std::string HostChain::folder() const { return "\"$HOME\"/.lockstep/links/" + id_; }

namespace detail {

std::vector<ChainEnd> read_chain_report(
    const std::vector<std::pair<std::string, const Host*>>& hosts, const std::string& report) {
  std::vector<ChainEnd> out;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    out.push_back({.host = hosts[i].second, .from = i > 0 ? hosts[i - 1].second : nullptr});
  }
  ChainEnd* of = nullptr;
  for (const std::string& line : split(report, '\n')) {
    if (line.size() < 2 || line[1] != ' ') continue;
    const std::string rest = line.substr(2);
    if (line[0] == '>' && of != nullptr) of->output += rest + "\n";
    if (line[0] == '!' && of != nullptr) of->error += rest + "\n";
    if (line[0] != '@' && line[0] != '?') continue;
    const std::vector<std::string> words = split(rest, ' ');
    of = nullptr;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].first == words[0]) of = &out[i];
    }
    if (of == nullptr || line[0] == '?' || words.size() < 2) continue;
    of->reached = true;
    // The shell's code, as waitpid gives it.
    of->status = std::atoi(words[1].c_str()) << 8;
  }
  return out;
}

}  // namespace detail

}  // namespace lockstep

// The hosts of a doctor or a plan. All are asked at the same time, and one that fails does not stop
// the others.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/probe/probe_session.h"

namespace lockstep {

struct ProbedHost {
  std::unique_ptr<ProbeSession> session;
  nlohmann::ordered_json facts;  // launch/probe/probe.h
  // The address for traffic, its interface, and why it was chosen. Empty: none was found.
  std::string address, interface, why;
  std::optional<Error> failure;  // why it does not answer (any more)

  const Host& host() const { return session->host(); }
  bool answers() const { return !failure; }
};

class ProbedHosts {
 public:
  // Starts a probe on each host; without hosts, on this machine alone, with this program (not one
  // that `lockstep cluster setup` once installed here).
  ProbedHosts(const HostList& hosts, const RemoteOptions& options);

  std::vector<ProbedHost>& all() { return hosts_; }
  const std::vector<ProbedHost>& all() const { return hosts_; }
  std::vector<std::size_t> answering() const;

  // Calls `f` for each host that still answers, in a thread of its own; an Error becomes the host's
  // failure.
  void each(const std::function<void(ProbedHost& host, std::size_t index)>& f);

  // Asks for facts and chooses addresses: the one given, else what the name resolves to if the host
  // has it, else what ssh connected to, else that of the route to another host.
  void ask_facts(const nlohmann::ordered_json& request, std::chrono::milliseconds limit);

  // Runs all-reduces over the answering hosts, one rank on each, by the path that training takes.
  // `exchanges` is [{"sums", "repeats", "pause_ms", "limit_ms"}]; the answer has "seconds" and
  // "cpu_seconds" for each. Throws the MachineError of the first host that failed.
  nlohmann::ordered_json exchange(const nlohmann::ordered_json& exchanges,
                                  std::chrono::seconds limit);

 private:
  void choose_address(ProbedHost& host, std::size_t index);

  std::vector<ProbedHost> hosts_;
};

}  // namespace lockstep

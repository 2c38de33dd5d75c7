// The hosts of a doctor or a plan: all are asked at the same time, and one that fails stops nobody
// else.
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
  // For traffic: the address, the interface that has it, and why this one. Empty: none was found.
  std::string address, interface, why;
  std::optional<Error> failure;  // why it does not answer (any more)

  const Host& host() const { return session->host(); }
  bool answers() const { return !failure; }
};

class ProbedHosts {
 public:
  // Starts a probe on each; without hosts, on this machine alone, by this program (not by another
  // one that `lockstep cluster setup` once left here).
  ProbedHosts(const HostList& hosts, const RemoteOptions& options);

  std::vector<ProbedHost>& all() { return hosts_; }
  const std::vector<ProbedHost>& all() const { return hosts_; }
  std::vector<std::size_t> answering() const;

  // `f` of each host that still answers, each in a thread of its own; an Error is noted as the
  // host's failure.
  void each(const std::function<void(ProbedHost& host, std::size_t index)>& f);

  // Asks for facts and settles on addresses: the one given, else what the name stands for if the
  // host has it, else what ssh connected to, else that of the route to another host.
  void ask_facts(const nlohmann::ordered_json& request, std::chrono::milliseconds limit);

  // Sums over the answering hosts, one rank on each, through the path that training takes.
  // `exchanges`: [{"bytes", "repeats", "pause_ms", "limit_ms"}]; the answer has "seconds" and
  // "cpu_seconds" for each. Throws MachineError: of the first host that failed.
  nlohmann::ordered_json exchange(const nlohmann::ordered_json& exchanges,
                                  std::chrono::seconds limit);

 private:
  void choose_address(ProbedHost& host, std::size_t index);

  std::vector<ProbedHost> hosts_;
};

}  // namespace lockstep

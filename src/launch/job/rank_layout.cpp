#include "launch/job/rank_layout.h"

#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <numeric>

#include "base/usable_cores.h"
#include "launch/job/rank_set.h"
#include "launch/probe/probed_hosts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// A driver may take seconds to show its GPUs for the first time.
constexpr std::chrono::seconds kFactsLimit{30};

std::string count(int number, const char* thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

int cores_of(const HostResources& host) {
  return std::accumulate(host.node_cores.begin(), host.node_cores.end(), 0);
}

// Like CoreFacts::threads(), for a machine that may be elsewhere.
int threads_of(const HostResources& host) {
  CoreFacts facts{.nodes = {}, .limit = host.core_limit};
  for (int cores : host.node_cores) facts.nodes.emplace_back(cores);
  return facts.threads();
}

bool nodes_are_equal(const HostResources& host) {
  return std::all_of(host.node_cores.begin(), host.node_cores.end(),
                     [&](int cores) { return cores == host.node_cores.front(); });
}

// Returns "2 NUMA nodes of 4 cores" or "8 cores, of which its control group lets 1.5 be busy".
std::string describe_cores(const HostResources& host) {
  const int cores = cores_of(host), nodes = static_cast<int>(host.node_cores.size());
  std::string out = count(cores, "core");
  if (nodes > 1) {
    std::vector<std::string> sizes;
    for (int n : host.node_cores) sizes.push_back(std::to_string(n));
    out = nodes_are_equal(host)
              ? fmt::format("{} NUMA nodes of {}", nodes, count(host.node_cores.front(), "core"))
              : fmt::format("NUMA nodes of {} cores", fmt::join(sizes, " and "));
  }
  if (host.core_limit > 0 && host.core_limit < cores) {
    out += fmt::format(", of which its control group lets {:g} be busy", host.core_limit);
  }
  return out;
}

}  // namespace

HostResources HostResources::of(const Json& facts) {
  if (!facts.contains("compute")) {
    MachineError error("lockstep {} there does not tell what -n auto asks for, {} is here",
                       facts.at("versions").value("lockstep", ""), LOCKSTEP_VERSION);
    error.set_advice("lockstep cluster setup installs this one, or a number of ranks: HOST:N");
    throw error;
  }
  HostResources out;
  out.node_cores = facts.at("node_cores").get<std::vector<int>>();
  out.core_limit = facts.at("core_limit");
  const Json& compute = facts.at("compute");
  out.gpus = compute.at("gpus");
  out.gpus_seen = compute.at("gpus_seen");
  out.why_no_gpu = compute.at("why_no_gpu");
  return out;
}

std::string RankLayout::text() const {
  return fmt::format("{} x {}: {}", count(ranks, "rank"), count(threads, "thread"), reason);
}

RankLayout choose_layout(const HostResources& host, const LayoutWishes& wishes) {
  const int threads = threads_of(host), nodes = static_cast<int>(host.node_cores.size());
  RankLayout out;
  if (wishes.gpus && host.gpus > 0) {
    out.ranks = std::min(host.gpus, kMostLocalRanks);
    out.reason = count(host.gpus, "GPU");
  } else {
    // A rank whose threads and memory are on one node does not wait for another node's memory.
    const bool by_node = nodes > 1 && nodes_are_equal(host) && threads > host.node_cores.front();
    if (by_node) out.ranks = nodes;
    out.pin = by_node;
    out.reason = describe_cores(host);
    if (!wishes.gpus && host.gpus > 0) {
      out.reason += fmt::format("; {} left alone, as run.device says", count(host.gpus, "GPU"));
    } else if (wishes.gpus && host.gpus_seen > 0) {
      out.reason += fmt::format("; {}, but none can be used: {}", count(host.gpus_seen, "GPU"),
                                host.why_no_gpu);
    }
  }
  out.threads = threads_of_rank(threads, out.ranks);
  if (wishes.threads > 0) {
    out.threads = wishes.threads;
    out.reason += fmt::format("; OMP_NUM_THREADS={}", wishes.threads);
  }
  return out;
}

RankLayout layout_of_this_machine(const LayoutWishes& wishes) {
  struct sigaction before {};  // probing ignores SIGPIPE; the launcher does not
  ::sigaction(SIGPIPE, nullptr, &before);
  ProbedHosts probed({}, {});
  ::sigaction(SIGPIPE, &before, nullptr);
  probed.ask_facts(Json::object(), kFactsLimit);
  const ProbedHost& here = probed.all().front();
  if (here.failure) throw *here.failure;
  return choose_layout(HostResources::of(here.facts), wishes);
}

std::vector<std::string> settle_slots(HostList& hosts, const RemoteOptions& remote,
                                      const LayoutWishes& wishes, int least_hosts) {
  HostList unsettled{.hosts = {}, .source = hosts.source};
  std::copy_if(hosts.hosts.begin(), hosts.hosts.end(), std::back_inserter(unsettled.hosts),
               [](const Host& host) { return host.slots == kAutoSlots; });
  std::vector<std::string> out;
  if (unsettled.hosts.empty()) return out;
  ProbedHosts probed(unsettled, remote);
  probed.ask_facts(Json::object(), kFactsLimit);
  const std::vector<std::size_t> answering = probed.answering();
  auto asked = probed.all().begin();
  for (Host& host : hosts.hosts) {
    if (host.slots != kAutoSlots) continue;
    const bool answers = asked->answers();
    if (!answers && (least_hosts == 0 || answering.empty())) throw *asked->failure;
    const ProbedHost& like = answers ? *asked : probed.all()[answering.front()];
    const RankLayout layout = choose_layout(HostResources::of(like.facts), wishes);
    host.slots = layout.ranks;
    host.pin = layout.pin;
    out.push_back(answers ? fmt::format("{}: {}", host.name, layout.text())
                          : fmt::format("{}: does not answer, {} as on {} once it does", host.name,
                                        count(layout.ranks, "rank"), like.host().name));
    ++asked;
  }
  return out;
}

}  // namespace lockstep

#include "launch/probe/probed_hosts.h"

#include <unistd.h>

#include <mutex>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "dist/rank/network.h"
#include "dist/rank/token.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

Host this_machine() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return {.name = name[0] != '\0' ? name : "this machine",
          .ssh_name = "localhost",
          .address = "127.0.0.1"};
}

// Returns the interface of an address; empty when the host has no such address.
std::string interface_with(const Json& facts, const std::string& address) {
  for (const Json& i : facts.at("interfaces")) {
    if (i.at("address") == address) return i.at("name");
  }
  return "";
}

}  // namespace

ProbedHosts::ProbedHosts(const HostList& list, const RemoteOptions& options) {
  std::vector<Host> hosts = list.hosts;
  RemoteOptions started = options;
  if (hosts.empty()) {
    hosts.push_back(this_machine());
    if (started.program.empty()) started.program = fs::read_symlink("/proc/self/exe").string();
  }
  for (Host& host : hosts) {
    hosts_.emplace_back().session = std::make_unique<ProbeSession>(std::move(host), started);
  }
}

std::vector<std::size_t> ProbedHosts::answering() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].answers()) out.push_back(i);
  }
  return out;
}

void ProbedHosts::each(const std::function<void(ProbedHost& host, std::size_t index)>& f) {
  std::vector<std::thread> threads;
  std::exception_ptr bug;
  std::mutex mutex;
  for (std::size_t i : answering()) {
    threads.emplace_back([&, i] {
      try {
        reading_answers(hosts_[i].host().name, [&] { f(hosts_[i], i); });
      } catch (const Error& error) {
        hosts_[i].failure = error;
      } catch (...) {
        std::scoped_lock lock(mutex);
        bug = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (bug) std::rethrow_exception(bug);
}

void ProbedHosts::ask_facts(const Json& request, std::chrono::milliseconds limit) {
  each([&](ProbedHost& host, std::size_t) {
    host.facts = host.session->ask("facts", request, limit);
  });
  if (answering().size() < 2) return;
  each([&](ProbedHost& host, std::size_t index) { choose_address(host, index); });
}

void ProbedHosts::choose_address(ProbedHost& host, std::size_t index) {
  auto take = [&](const std::string& address, const std::string& why) {
    if (address.empty() || address.starts_with("127.") || address == "::1") return false;
    host.address = address;
    host.interface = interface_with(host.facts, address);
    host.why = why;
    return !host.interface.empty();
  };
  if (!host.host().address.empty() && take(host.host().address, "the address given")) return;
  if (!host.address.empty()) return;  // given, but not its own: a finding
  for (const std::string& address : addresses_elsewhere(host.host().name)) {
    if (take(address, "what its name stands for")) return;
    host.address.clear();
  }
  if (take(host.facts.value("ssh_address", ""), "ssh connected to it")) return;
  host.address.clear();
  // For this machine among other hosts: its address on the route to one of them.
  for (std::size_t other : answering()) {
    if (other == index) continue;
    const Host& there = hosts_[other].host();
    const std::string to = there.address.empty() ? there.name : there.address;
    try {
      const Json route = host.session->ask("route", Json{{"to", to}}, std::chrono::seconds(5));
      if (take(route.at("address"), "the route to " + there.name)) return;
    } catch (const Error&) {
      continue;  // a name that only ssh's configuration knows
    }
  }
}

Json ProbedHosts::exchange(const Json& exchanges, std::chrono::seconds limit) {
  const std::vector<std::size_t> ranks = answering();
  ProbedHost& first = hosts_[ranks.at(0)];
  const int port =
      first.session
          ->ask("exchange_listen", Json{{"address", first.address}}, std::chrono::seconds(5))
          .at("port");
  Json request = {{"size", ranks.size()},
                  {"address", first.address},
                  {"port", port},
                  {"run_id", fmt::format("probe-{}-{}", ::getpid(), port)},
                  {"secret", to_hex(random_token())},
                  {"limit_seconds", limit.count()},
                  {"exchanges", exchanges}};
  std::vector<Json> answers(ranks.size());
  std::vector<std::optional<Error>> failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Json mine = request;
      mine["rank"] = rank;
      try {
        ProbedHost& host = hosts_[ranks[rank]];
        answers[rank] = reading_answers(host.host().name, [&] {
          Json answer = host.session->ask("exchange", mine, limit + std::chrono::seconds(3));
          return answer.at("exchanges");
        });
      } catch (const Error& error) {
        failures[rank] = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::optional<Error>& failure : failures) {
    if (failure) throw *failure;
  }
  return answers[0];
}

}  // namespace lockstep

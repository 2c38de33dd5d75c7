#include "launch/doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/digest.h"
#include "dist/rank/token.h"
#include "launch/job/rank_layout.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// For all rounds together, so that the doctor takes less than 20 s.
constexpr double kLinkSeconds = 7;
constexpr std::size_t kMostRounds = 15;  // with more than 16 hosts, not every pair meets

Json facts_request(const DoctorNeeds& needs) {
  Json request = {{"folder", needs.folder}};
  request["disks"] = Json::array({"/tmp"});
  if (!needs.run_folder.empty()) request["disks"].push_back(needs.run_folder);
  if (!needs.config.empty()) request["config"] = needs.config;
  if (!needs.corpus.empty()) request["corpus"] = needs.corpus;
  return request;
}

// Where each host listens (0: nowhere), and the token that whoever measures begins with.
struct Listening {
  std::string token = to_hex(random_token());
  std::vector<int> ports;
};

Listening listen_everywhere(ProbedHosts& hosts) {
  Listening out{.ports = std::vector<int>(hosts.all().size())};
  hosts.each([&](ProbedHost& host, std::size_t i) {
    if (host.address.empty()) return;
    try {
      const Json request = {{"address", host.address}, {"token", out.token}};
      out.ports[i] = host.session->ask("listen", request, seconds(5)).at("port");
    } catch (const Error&) {
      host.interface.clear();  // the address is not its own; judged as that
    }
  });
  return out;
}

LinkReport meet(ProbedHosts& hosts, const Listening& listening,
                std::pair<std::size_t, std::size_t> pair, double each_seconds) {
  LinkReport out{.from = pair.first, .to = pair.second};
  ProbedHost& from = hosts.all()[pair.first];
  ProbedHost& to = hosts.all()[pair.second];
  auto ask = [&](ProbedHost& asked, const ProbedHost& other, int port, double time) {
    return asked.session->ask("link",
                              Json{{"from", asked.address},
                                   {"to", other.address},
                                   {"port", port},
                                   {"token", listening.token},
                                   {"seconds", time}},
                              seconds(20));
  };
  try {
    const Json speed = ask(from, to, listening.ports[pair.second], each_seconds);
    out.round_trip_seconds = speed.at("round_trip_seconds");
    out.to_one = speed.at("to_one_stream");
    out.to_many = speed.at("to_streams");
    out.from_one = speed.at("from_one_stream");
    out.from_many = speed.at("from_streams");
  } catch (const Error& error) {
    out.failure = error.what();
  }
  try {
    ask(to, from, listening.ports[pair.first], 0);
  } catch (const Error& error) {
    out.back_failure = error.what();
  }
  return out;
}

// Measures round after round, the pairs of a round at the same time: no host has two partners at
// once.
std::vector<LinkReport> measure_links(ProbedHosts& hosts) {
  const Listening listening = listen_everywhere(hosts);
  std::vector<std::size_t> able;
  for (std::size_t i : hosts.answering()) {
    if (listening.ports[i] > 0) able.push_back(i);
  }
  auto rounds = tournament(able.size());
  rounds.resize(std::min(rounds.size(), kMostRounds));
  constexpr int kMeasured = 4;  // one and several streams, each way
  const double each = std::clamp(
      kLinkSeconds / kMeasured / static_cast<double>(std::max<std::size_t>(1, rounds.size())), 0.1,
      0.4);
  std::vector<LinkReport> out;
  for (const auto& round : rounds) {
    std::vector<LinkReport> met(round.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < round.size(); ++i) {
      threads.emplace_back([&, i] {
        met[i] = meet(hosts, listening, {able[round[i].first], able[round[i].second]}, each);
      });
    }
    for (std::thread& thread : threads) thread.join();
    out.insert(out.end(), met.begin(), met.end());
  }
  return out;
}

// Measures the all-reduce of the gradients, or of as much as takes about a second on the slowest
// link.
ExchangeReport measure_exchange(ProbedHosts& hosts, const std::vector<LinkReport>& links,
                                const DoctorNeeds& needs) {
  ExchangeReport out;
  double slowest = 1e12;
  for (const LinkReport& link : links) {
    if (!link.failure.empty() || !link.back_failure.empty() || link.least() <= 0) return out;
    slowest = std::min(slowest, link.least());
  }
  const auto gradients = static_cast<double>(needs.gradient_bytes);
  out.bytes = std::min(gradients, std::max(256e3, slowest * 0.7));
  const Json wanted = Json::array(
      {Json{{"sums", {static_cast<int64_t>(out.bytes)}}, {"repeats", 6}, {"limit_ms", 3000}}});
  try {
    out.seconds = hosts.exchange(wanted, seconds(12)).at(0).at("seconds");
    out.gradient_seconds = out.seconds * gradients / out.bytes;
  } catch (const Error& error) {
    out.failure = error.describe();
  }
  return out;
}

}  // namespace

const char* name_of(Judgement verdict) {
  switch (verdict) {
    case Judgement::kOk:
      return "ok";
    case Judgement::kWarn:
      return "warn";
    case Judgement::kFail:
      return "fail";
  }
  return "";
}

Judgement DoctorReport::worst() const {
  Judgement out = Judgement::kOk;
  for (const DoctorFinding& f : findings) out = std::max(out, f.verdict);
  return out;
}

std::vector<std::vector<std::pair<std::size_t, std::size_t>>> tournament(std::size_t count) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds;
  if (count < 2) return rounds;
  const std::size_t seats = count + count % 2;  // with an odd number, one host rests
  for (std::size_t round = 0; round + 1 < seats; ++round) {
    auto& pairs = rounds.emplace_back();
    auto player = [&](std::size_t seat) {  // the last one stays, the others rotate
      return seat + 1 == seats ? seat : (seat + round) % (seats - 1);
    };
    for (std::size_t seat = 0; seat < seats / 2; ++seat) {
      std::size_t a = player(seat), b = player(seats - 1 - seat);
      if (a >= count || b >= count) continue;
      pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

namespace {

DoctorReport examine_hosts(const HostList& list, const RemoteOptions& remote,
                           const DoctorNeeds& needs) {
  const auto start = std::chrono::steady_clock::now();
  DoctorReport report;
  ProbedHosts hosts(list, remote);
  const auto limit = milliseconds(static_cast<int64_t>(remote.connect_seconds * 1000) + 5000);
  hosts.ask_facts(facts_request(needs), limit);
  report.hosts.resize(hosts.all().size());
  hosts.each([&](ProbedHost& host, std::size_t i) {
    const ProbeSession::Clock clock = host.session->read_clock();
    report.hosts[i].clock_ahead_seconds = clock.ahead_seconds;
    report.hosts[i].clock_error_seconds = clock.round_trip_seconds / 2;
    report.hosts[i].speed = host.session->ask("speed", Json{{"seconds", 1.0}}, seconds(15));
  });
  if (hosts.answering().size() > 1) {
    report.links = measure_links(hosts);
    bool all_have_one = true;
    for (std::size_t i : hosts.answering()) all_have_one &= !hosts.all()[i].interface.empty();
    if (needs.gradient_bytes > 0 && all_have_one) {
      report.exchange = measure_exchange(hosts, report.links, needs);
    }
  }
  for (std::size_t i = 0; i < hosts.all().size(); ++i) {
    ProbedHost& host = hosts.all()[i];
    HostReport& out = report.hosts[i];
    out.name = host.host().name;
    out.ranks = host.host().slots;
    // Without a host list or a number of ranks, the ranks are those that launch -n auto would
    // start.
    if ((list.hosts.empty() || out.ranks == kAutoSlots) && host.facts.contains("compute")) {
      const RankLayout layout =
          choose_layout(HostResources::of(host.facts), {.gpus = needs.device != "cpu"});
      out.ranks = layout.ranks;
      out.layout = layout.text();
    }
    out.address = host.address;
    out.interface = host.interface;
    out.why = host.why;
    out.facts = std::move(host.facts);
    out.failure = host.failure;
  }
  report.findings = judge(report, needs);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

DoctorReport examine(const HostList& list, const RemoteOptions& remote, const DoctorNeeds& needs) {
  return reading_answers("the hosts", [&] { return examine_hosts(list, remote, needs); });
}

}  // namespace lockstep

#include "train/listeners/host_means.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

RankSeen make_rank(int rank, const char* host, bool samples_machine) {
  RankSeen out;
  out.identity.rank = rank;
  std::strcpy(out.identity.host, host);
  HostFigures& usage = out.status.usage;
  usage.samples = 1;
  usage.seconds = 1;
  usage.process_cores = 1.5;
  usage.usable_cores = 4;
  usage.cores_id = 7;
  usage.resident_bytes = 1000;
  if (!samples_machine) return out;
  MachineFigures& m = out.machine;
  m.samples = 1;
  m.seconds = 1;
  m.cpu_share = 0.5;
  m.cores = 4;
  m.core_percent[0] = 100;
  m.memory_bytes = 8000;
  m.available_bytes = 5000;
  std::strcpy(m.interface, "eth0");
  m.link_bytes_per_second = 1000;
  m.in_bytes_per_second = 100;
  m.out_bytes_per_second = 300;
  m.gpus = 1;
  std::strcpy(m.gpu[0].name, "Invented GPU");
  m.gpu[0].use = 0.5F;
  m.gpu[0].watts = 100;
  m.gpu[0].memory_bytes = 16000;
  m.gpu[0].memory_used_bytes = 4000;
  m.gpu[0].joules = 1000;
  return out;
}

std::map<std::string, double> by_name(const HostSummary& summary) {
  return {summary.scalars.begin(), summary.scalars.end()};
}

TEST(HostMeans, AreOverTimeAndBeginAnew) {
  std::vector<RankSeen> ranks{make_rank(0, "a", true), make_rank(1, "a", false),
                              make_rank(2, "b", true)};
  HostMeans means;
  means.add(ranks);
  means.add(ranks);  // the same samples count once
  MachineFigures& m = ranks[0].machine;
  m.samples = 2;
  m.seconds = 3;
  m.cpu_share = 1;
  m.available_bytes = 2000;
  m.gpu[0].use = 0.9F;
  m.gpu[0].joules = 1300;
  means.add(ranks);
  const std::vector<HostSummary> hosts = means.take();
  ASSERT_EQ(hosts.size(), 2u);
  const Json& line = hosts[0].line;
  EXPECT_EQ(line["host"], "a");
  EXPECT_EQ(line["seconds"], 4);
  EXPECT_DOUBLE_EQ(line["cpu_share"], 0.875);
  EXPECT_EQ(line["memory_available_bytes"], 2000) << "the least";
  EXPECT_DOUBLE_EQ(line["link_share"], 0.3);
  EXPECT_EQ(line["cpu_core_percent"], Json({100, 0, 0, 0}));
  EXPECT_EQ(line["cpu_busiest_core_share"], 1);
  EXPECT_EQ(line["cpu_idlest_core_share"], 0);
  EXPECT_EQ(line["cpu_usable_cores"], 4) << "both ranks share them";
  EXPECT_NEAR(line["gpus"][0]["use"], 0.8, 1e-4);
  EXPECT_EQ(line["gpus"][0]["joules"], 300);
  EXPECT_FALSE(line["gpus"][0].contains("temperature")) << "the driver does not say";
  EXPECT_FALSE(line.contains("cpu_watts"));
  ASSERT_EQ(line["ranks"].size(), 2u);
  EXPECT_EQ(line["ranks"][1]["rank"], 1);
  EXPECT_EQ(line["ranks"][1]["cores"], 1.5);
  const auto scalars = by_name(hosts[0]);
  EXPECT_NEAR(scalars.at("gpu0/use"), 0.8, 1e-6);
  EXPECT_EQ(scalars.at("gpu0/memory_used_bytes"), 4000);
  EXPECT_EQ(scalars.at("rank1/cores"), 1.5);
  EXPECT_EQ(scalars.at("memory_used_bytes"), 6000);
  EXPECT_EQ(hosts[1].host, "b");
  EXPECT_EQ(hosts[1].line["ranks"].size(), 1u);

  EXPECT_TRUE(means.take().empty()) << "no new sample";
  m.samples = 3;
  m.gpu[0].joules = 1350;
  means.add(ranks);
  const std::vector<HostSummary> next = means.take();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].line["gpus"][0]["joules"], 50);
  EXPECT_TRUE(next[0].line["ranks"].empty()) << "their samples were seen before";
}

TEST(HostMeans, RanksWithCoresOfTheirOwnAddThemUp) {
  std::vector<RankSeen> ranks{make_rank(0, "a", true), make_rank(1, "a", false)};
  for (RankSeen& r : ranks) {
    r.status.usage.usable_cores = 2;
    r.status.usage.cores_id = 10 + r.identity.rank;
  }
  ranks[1].status.usage.core_limit = 1.5;
  HostMeans means;
  means.add(ranks);
  EXPECT_DOUBLE_EQ(means.take()[0].line["cpu_usable_cores"], 3.5);
}

TEST(HostMeans, AHostThatTwoRanksSampleIsToldOnce) {
  HostMeans means;
  means.add({make_rank(0, "a", true), make_rank(1, "a", true)});
  EXPECT_EQ(means.take().size(), 1u);
}

}  // namespace
}  // namespace lockstep

#include "launch/doctor/doctor.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// A host without fault; `index` makes its addresses its own.
HostReport sound_host(const std::string& name, int index) {
  HostReport host;
  host.name = name;
  host.address = "10.0.0." + std::to_string(index);
  host.interface = "eth0";
  host.why = "the address given";
  host.clock_error_seconds = 1e-4;
  host.facts = {
      {"versions", {{"lockstep", "0.1.0"}, {"libtorch", "2.13.0"}, {"driver", ""}}},
      {"cores", 8},
      {"load", 0.1},
      {"memory_bytes", 32e9},
      {"free_memory_bytes", 30e9},
      {"gpus", Json::array()},
      {"compute",
       {{"gpus", 0},
        {"gpus_seen", 0},
        {"why_no_gpu", "no NVIDIA driver"},
        {"bf16", true},
        {"fp16", false},
        {"formats_why", "this CPU has avx512_bf16"}}},
      {"folder_there", true},
      {"disks", {{{"path", "runs/x"}, {"below", "/"}, {"free_bytes", 100e9}, {"writable", true}}}},
      {"interfaces",
       {{{"name", "eth0"},
         {"address", host.address},
         {"up", true},
         {"loopback", false},
         {"speed_mbit", 1000}},
        {{"name", "lo"},
         {"address", "127.0.0.1"},
         {"up", true},
         {"loopback", true},
         {"speed_mbit", -1}}}},
      {"network",
       {{"slow_start_after_idle", 1}, {"receive_bytes_max", 6291456}, {"send_bytes_max", 4194304}}},
      {"config", {{"hash", "aa"}, {"problem", ""}}},
      {"corpus", {{"hash", "bb"}, {"problem", ""}}}};
  host.speed = {{"fp32_flops", 500e9}, {"bf16_flops", 900e9}, {"copied_bytes_per_second", 10e9}};
  return host;
}

LinkReport sound_link(std::size_t from, std::size_t to) {
  return {.from = from,
          .to = to,
          .round_trip_seconds = 2e-4,
          .to_one = 117e6,
          .to_many = 117e6,
          .from_one = 117e6,
          .from_many = 117e6};
}

DoctorReport sound_report() {
  DoctorReport report;
  report.hosts = {sound_host("a", 1), sound_host("b", 2), sound_host("c", 3)};
  report.links = {sound_link(0, 1), sound_link(0, 2), sound_link(1, 2)};
  return report;
}

DoctorNeeds usual_needs() {
  return {.config = "x.toml",
          .corpus = "data/x",
          .run_folder = "runs/x",
          .folder = "/home/me",
          .gradient_bytes = 260'000'000,
          .memory_bytes = 1'000'000'000,
          .disk_bytes = 4'000'000'000};
}

// The findings of a check that are not ok.
std::vector<DoctorFinding> troubles(const DoctorReport& report, const std::string& check) {
  std::vector<DoctorFinding> out;
  for (const DoctorFinding& f : judge(report, usual_needs())) {
    if (f.verdict != Judgement::kOk && (check.empty() || f.check == check)) out.push_back(f);
  }
  return out;
}

void expect_one(const DoctorReport& report, const std::string& check, Judgement verdict,
                const std::string& host) {
  std::vector<DoctorFinding> found = troubles(report, "");
  ASSERT_EQ(found.size(), 1u) << check << (found.empty() ? "" : ": " + found.back().seen);
  EXPECT_EQ(found[0].check, check);
  EXPECT_EQ(found[0].verdict, verdict);
  EXPECT_EQ(found[0].host, host);
  EXPECT_FALSE(found[0].seen.empty() || found[0].expected.empty() || found[0].advice.empty());
}

TEST(Doctor, FindsNothingWrongWithSoundHosts) {
  EXPECT_TRUE(troubles(sound_report(), "").empty());
  DoctorReport report = sound_report();
  report.findings = judge(report, usual_needs());
  EXPECT_EQ(report.worst(), Judgement::kOk);
  EXPECT_NE(doctor_text(report).find("Verdict: ready"), std::string::npos);
}

TEST(Doctor, NamesAHostThatDoesNotAnswerAndChecksTheOthers) {
  DoctorReport report = sound_report();
  MachineError refused("c: refuses the key");
  refused.set_advice("ssh-copy-id c");
  report.hosts[2].failure = refused;
  report.links.resize(1);
  expect_one(report, "reach", Judgement::kFail, "c");
  report.hosts[1].clock_ahead_seconds = 5;
  EXPECT_EQ(troubles(report, "clock").size(), 1u);
}

Json& compute_of(DoctorReport& report, std::size_t host) {
  return report.hosts[host].facts["compute"];
}

// What the findings of a check say, one line each.
std::string said(const DoctorReport& report, const DoctorNeeds& needs, const std::string& check) {
  std::string out;
  for (const DoctorFinding& f : judge(report, needs)) {
    if (f.check == check) out += f.host + (f.host.empty() ? "" : ": ") + f.seen + "\n";
  }
  return out;
}

TEST(Doctor, TellsThePrecisionThatAutoTakes) {
  DoctorReport report = sound_report();
  DoctorNeeds needs = usual_needs();
  EXPECT_EQ(said(report, needs, "precision"), "bf16 (auto: this CPU has avx512_bf16)\n");
  needs.precision = "fp32";
  EXPECT_EQ(said(report, needs, "precision"), "fp32\n");
}

TEST(Doctor, WarnsOfTheHostThatRulesABetterPrecisionOut) {
  DoctorReport report = sound_report();
  compute_of(report, 1)["bf16"] = false;
  compute_of(report, 1)["formats_why"] = "this CPU (avx2) has neither";
  expect_one(report, "precision", Judgement::kWarn, "b");
  EXPECT_EQ(said(report, usual_needs(), "precision"),
            "b: this CPU (avx2) has neither; the run would compute in fp32\n");
  DoctorNeeds needs = usual_needs();
  needs.precision = "bf16";
  EXPECT_EQ(said(report, needs, "precision"),
            "b: bf16 is slow there: this CPU (avx2) has neither\n");
}

TEST(Doctor, FindsNothingWrongWhereNoHostComputesABetterPrecision) {
  DoctorReport report = sound_report();
  for (std::size_t i = 0; i < report.hosts.size(); ++i) {
    compute_of(report, i)["bf16"] = false;
    compute_of(report, i)["formats_why"] = "this CPU (avx2) has neither";
  }
  EXPECT_TRUE(troubles(report, "").empty());
  EXPECT_EQ(said(report, usual_needs(), "precision"), "fp32 (auto: this CPU (avx2) has neither)\n");
}

TEST(Doctor, WarnsOfGpusThatTorchCannotUse) {
  DoctorReport report = sound_report();
  compute_of(report, 2)["gpus_seen"] = 1;
  compute_of(report, 2)["why_no_gpu"] = "no module for CUDA";
  expect_one(report, "gpus", Judgement::kWarn, "c");
  DoctorNeeds needs = usual_needs();
  needs.device = "cpu";
  EXPECT_EQ(said(report, needs, "gpus"), "");
}

TEST(Doctor, TellsTheRanksThatAutoStarts) {
  DoctorReport report = sound_report();
  report.hosts[0].layout = "1 rank x 8 threads: 8 cores";
  EXPECT_EQ(said(report, usual_needs(), "ranks"), "a: 1 rank x 8 threads: 8 cores\n");
}

TEST(Doctor, FailsHostsWithOtherVersions) {
  DoctorReport report = sound_report();
  report.hosts[1].facts["versions"]["libtorch"] = "2.14.0";
  expect_one(report, "versions", Judgement::kFail, "b");
  report = sound_report();
  report.hosts[2].facts["versions"]["driver"] = "550.54";
  expect_one(report, "versions", Judgement::kWarn, "c");
}

TEST(Doctor, WarnsOfAClockBeyondWhatItsMeasurementLeavesOpen) {
  DoctorReport report = sound_report();
  report.hosts[1].clock_ahead_seconds = -3;
  expect_one(report, "clock", Judgement::kWarn, "b");
  report.hosts[1].clock_ahead_seconds = 0.15;
  report.hosts[1].clock_error_seconds = 0.1;
  EXPECT_TRUE(troubles(report, "clock").empty());
}

TEST(Doctor, ComparesDiskAndMemoryWithWhatTheRunNeeds) {
  DoctorReport report = sound_report();
  report.hosts[0].facts["disks"][0]["free_bytes"] = 1e9;
  expect_one(report, "disk", Judgement::kFail, "a");
  report = sound_report();
  report.hosts[1].facts["disks"][0]["free_bytes"] = 1e9;  // logs alone: enough
  EXPECT_TRUE(troubles(report, "").empty());
  report.hosts[1].facts["disks"][0]["writable"] = false;
  expect_one(report, "disk", Judgement::kFail, "b");
  report = sound_report();
  report.hosts[2].facts["free_memory_bytes"] = 1.5e9;
  report.hosts[2].ranks = 2;
  expect_one(report, "memory", Judgement::kFail, "c");
}

TEST(Doctor, FailsHostsWithOtherOrMissingFiles) {
  DoctorReport report = sound_report();
  report.hosts[1].facts["corpus"]["hash"] = "other";
  expect_one(report, "files", Judgement::kFail, "b");
  report = sound_report();
  report.hosts[2].facts["config"]["problem"] = "x.toml: no such file";
  expect_one(report, "files", Judgement::kFail, "c");
}

TEST(Doctor, NamesASlowMachine) {
  DoctorReport report = sound_report();
  report.hosts[0].speed["bf16_flops"] = 700e9;  // 22 % below
  expect_one(report, "speed", Judgement::kWarn, "a");
  report.hosts[0].speed["bf16_flops"] = 800e9;  // 11 %
  EXPECT_TRUE(troubles(report, "").empty());
}

TEST(Doctor, NamesASlowAndALopsidedLink) {
  DoctorReport report = sound_report();
  LinkReport& link = report.links[2];
  link.to_many = link.to_one = link.from_many = link.from_one = 65e6;
  expect_one(report, "network", Judgement::kWarn, "b - c");
  link.from_many = 117e6;
  std::vector<DoctorFinding> found = troubles(report, "network");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[1].seen.find("from b to c"), std::string::npos) << found[1].seen;
}

TEST(Doctor, ComparesLinksWithTheRateOfTheirInterfaces) {
  DoctorReport report = sound_report();
  for (HostReport& host : report.hosts) host.facts["interfaces"][0]["speed_mbit"] = 10000;
  EXPECT_EQ(troubles(report, "network").size(), 3u);
}

TEST(Doctor, SaysWhichPortsAreShutInWhichDirection) {
  DoctorReport report = sound_report();
  report.links[0].back_failure = "10.0.0.1 cannot be reached from 10.0.0.2";
  expect_one(report, "ports", Judgement::kFail, "a - b");
}

TEST(Doctor, NamesTheSettingsOfTcpThatCostTimeOnFarHosts) {
  DoctorReport report = sound_report();
  for (LinkReport& link : report.links) link.round_trip_seconds = 0.04;
  std::vector<DoctorFinding> found = troubles(report, "");
  ASSERT_EQ(found.size(), 6u);  // idle connections and buffers, each on three hosts
  for (const DoctorFinding& f : found) EXPECT_EQ(f.check, "tcp");
}

TEST(Doctor, RefusesAddressesOfContainersAndNamesASecondWay) {
  DoctorReport report = sound_report();
  report.hosts[0].interface = "docker0";
  report.hosts[0].facts["interfaces"][0]["name"] = "docker0";
  expect_one(report, "interface", Judgement::kWarn, "a");
  report = sound_report();
  report.hosts[0].facts["interfaces"].push_back({{"name", "eth1"},
                                                 {"address", "10.1.0.1"},
                                                 {"up", true},
                                                 {"loopback", false},
                                                 {"speed_mbit", 25000}});
  expect_one(report, "interface", Judgement::kWarn, "a");
  report = sound_report();
  report.hosts[1].interface = "";
  expect_one(report, "interface", Judgement::kFail, "b");
}

TEST(Doctor, WantsAGpuForEachRank) {
  DoctorReport report = sound_report();
  report.hosts[0].facts["gpus"] = Json::array({Json{{"name", "T4"}, {"driver", ""}}});
  report.hosts[0].ranks = 2;
  expect_one(report, "gpus", Judgement::kFail, "a");
}

TEST(Doctor, LetsAllPairsMeetOnceAndNobodyTwiceAtATime) {
  for (std::size_t count : {2, 3, 4, 5, 8}) {
    std::set<std::pair<std::size_t, std::size_t>> met;
    for (const auto& round : tournament(count)) {
      std::set<std::size_t> busy;
      for (const auto& pair : round) {
        EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second);
        EXPECT_TRUE(met.insert(pair).second);
      }
    }
    EXPECT_EQ(met.size(), count * (count - 1) / 2) << count;
  }
  EXPECT_TRUE(tournament(1).empty());
}

TEST(Doctor, WritesJsonWithEveryFinding) {
  DoctorReport report = sound_report();
  report.hosts[1].facts["versions"]["lockstep"] = "0.0.9";
  report.findings = judge(report, usual_needs());
  Json json = Json::parse(to_json(report).dump());
  EXPECT_EQ(json.at("verdict"), "fail");
  EXPECT_EQ(json.at("hosts").size(), 3u);
  EXPECT_EQ(json.at("links").at(2).at("to"), "c");
  EXPECT_EQ(json.at("findings").size(), report.findings.size());
}

}  // namespace
}  // namespace lockstep

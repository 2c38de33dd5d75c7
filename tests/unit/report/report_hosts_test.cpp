// What reports make of the lines of hosts: figures over the whole run, findings, energy.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "report/answers/answers_hosts.h"
#include "report/answers/report_page.h"
#include "report/answers/report_text.h"
#include "support/report_parts.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Two hosts for two minutes, a line of each every 5 s.
struct InventedHosts {
  double rank_cores = 3.6, available = 0.5, traffic = 20e6, drops = 0, retransmits = 0.2;
  double others = 0;  // of all cores, by other programs
  bool gpus = false, cpu_energy = false, lines = true;
  double gpu_use = 0.9, slowed = 0;
};

class ReportHostsTest : public ::testing::Test {
 protected:
  Json report_of(const InventedHosts& hosts, const ReportOptions& options = {}) {
    const fs::path folder = folder_.path() / "nmt";
    fs::create_directories(folder);
    write_file(folder / "config.toml",
               "[task]\nname = \"translation\"\n[optimizer]\nname = \"adam\"\n");
    std::string text =
        Json{{"event", "start"}, {"time", 1000}, {"first_step", 1}, {"total_steps", 120}}.dump() +
        "\n";
    for (int step = 1; step <= 120; ++step) {
      text += step_line(step);
      if (step % 5 != 0 || !hosts.lines) continue;
      for (const char* name : {"a", "b"}) text += host_line(hosts, step, name);
    }
    text += R"({"event":"end","time":1120,"reason":"steps"})";
    write_file(folder / "metrics.jsonl", text + "\n");
    write_file(folder / "live.json", live().dump());
    report_ = make_report({folder}, options);
    return report_json(report_);
  }

  Report report_;

 private:
  static std::string step_line(int step) {
    return Json{{"event", "step"},
                {"time", 1000 + step},
                {"step", step},
                {"epoch", 0},
                {"train/loss", 3.0},
                {"train/nll", 3.0},
                {"train/learning_rate", 1},
                {"batch/targets", 1000},
                {"batch/sources", 900},
                {"batch/items", 40},
                {"time/step_seconds", 1.0},
                {"time/compute_seconds", 0.9},
                {"time/wait_seconds", 0.09},
                {"time/data_seconds", 0.01},
                {"comm/sent_bytes", 4e6}}
               .dump() +
           "\n";
  }

  static std::string host_line(const InventedHosts& h, int step, const std::string& name) {
    Json line = {{"event", "host"},
                 {"time", 1000 + step},
                 {"step", step},
                 {"host", name},
                 {"seconds", 5},
                 {"cpu_share", h.rank_cores / 4 + h.others},
                 {"cpu_cores", 4},
                 {"cpu_usable_cores", 4},
                 {"cpu_core_percent", {90, 90, 90, 90}},
                 {"memory_bytes", 16e9},
                 {"memory_available_bytes", 16e9 * h.available},
                 {"interface", "eth0"},
                 {"in_bytes_per_second", h.traffic},
                 {"out_bytes_per_second", h.traffic / 2},
                 {"in_packets_per_second", 10000},
                 {"out_packets_per_second", 10000},
                 {"drops_per_second", h.drops},
                 {"errors_per_second", 0},
                 {"tcp_segments_per_second", 10000},
                 {"tcp_retransmits_per_second", h.retransmits},
                 {"link_bytes_per_second", 125e6},
                 {"disk_read_bytes_per_second", 0},
                 {"disk_written_bytes_per_second", 0},
                 {"sampler_share", 0.0004}};
    if (h.cpu_energy && name == "a") {
      line["cpu_watts"] = 60;
      line["cpu_joules"] = 300;
    }
    if (h.gpus) {
      Json gpu = {{"name", "Invented GPU"},    {"use", h.gpu_use},     {"memory_bytes", 16e9},
                  {"memory_used_bytes", 12e9}, {"watts", 250},         {"joules", 1250},
                  {"temperature", 70},         {"sm_megahertz", 1400}, {"most_sm_megahertz", 1590},
                  {"slowed_share", h.slowed},  {"capped_share", 0.4}};
      line["gpus"] = {gpu, gpu};
      line["gpus"][1]["use"] = 0;
    }
    const int rank = name == "a" ? 0 : 1;
    line["ranks"] = Json::array();
    if (step == 120) return line.dump() + "\n";  // the last moment: no sample of a rank
    line["ranks"].push_back({{"rank", rank}, {"cores", h.rank_cores}, {"memory_bytes", 2e9}});
    return line.dump() + "\n";
  }

  static Json live() {
    Json ranks = Json::array();
    for (int rank : {0, 1}) {
      ranks.push_back({{"rank", rank},
                       {"host", rank == 0 ? "a" : "b"},
                       {"step_seconds", 1.0},
                       {"compute_seconds", 0.9},
                       {"wait_seconds", 0.09},
                       {"data_seconds", 0.01},
                       {"usage", Json::object()}});
    }
    return {{"version", 1}, {"state", "ended"}, {"size", 2}, {"unit", "tok"}, {"ranks", ranks}};
  }

  TemporaryFolder folder_;
};

TEST_F(ReportHostsTest, AHealthyRunHasFiguresAndNoFindings) {
  const Json report = report_of({.gpus = true});
  for (const char* id : {"cores_idle", "cores_taken", "gpu_idle", "gpu_throttled",
                         "memory_nearly_full", "link_full", "drops", "retransmits"}) {
    EXPECT_FALSE(findings_of(report).contains(id)) << id;
  }
  const Json facts = answer_of(report, "processors")["facts"];
  EXPECT_NEAR(facts["use_of_hosts"][0]["busy_cores"].get<double>(), 3.6, 1e-9);
  EXPECT_EQ(facts["use_of_hosts"][1]["sampled_seconds"], 120);
  EXPECT_EQ(facts["use_of_gpus"].size(), 4u);
  EXPECT_NEAR(facts["use_of_gpus"][0]["use"].get<double>(), 0.9, 1e-9);
  EXPECT_EQ(facts["use_of_ranks"][1]["memory_bytes"], 2e9);
  const Json links = answer_of(report, "network")["facts"]["use_of_links"];
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0]["in_bytes_per_second"], 20e6);
  std::set<std::string> figures;
  for (const Answer& one : report_.answers) {
    for (const Figure& figure : one.figures) figures.insert(figure.name);
  }
  for (const char* name : {"cpu-use", "memory-use", "gpu-use", "gpu-power", "gpu-temperature",
                           "gpu-clock", "link-use"}) {
    EXPECT_TRUE(figures.contains(name)) << name;
  }
  EXPECT_NE(report_page(report_).find("a gpu 0"), std::string::npos);
}

TEST_F(ReportHostsTest, FindsIdleCoresAndGpus) {
  EXPECT_TRUE(findings_of(report_of({.rank_cores = 1.5})).contains("cores_idle"));
  const auto idle = findings_of(report_of({.rank_cores = 1.5, .gpus = true, .gpu_use = 0.3}));
  EXPECT_TRUE(idle.contains("gpu_idle"));
  EXPECT_FALSE(idle.contains("cores_idle")) << "the GPUs do the work";
}

TEST_F(ReportHostsTest, CoresThatOtherProgramsTakeAreNotIdle) {
  const auto taken = findings_of(report_of({.rank_cores = 1.5, .others = 0.5}));
  EXPECT_TRUE(taken.contains("cores_taken"));
  EXPECT_FALSE(taken.contains("cores_idle"));
}

TEST_F(ReportHostsTest, FindsHeatMemoryFullLinksDropsAndRetransmits) {
  EXPECT_TRUE(findings_of(report_of({.gpus = true, .slowed = 0.2})).contains("gpu_throttled"));
  EXPECT_TRUE(findings_of(report_of({.available = 0.02})).contains("memory_nearly_full"));
  EXPECT_TRUE(findings_of(report_of({.traffic = 110e6})).contains("link_full"));
  EXPECT_TRUE(findings_of(report_of({.drops = 10})).contains("drops"));
  EXPECT_TRUE(findings_of(report_of({.retransmits = 50})).contains("retransmits"));
}

TEST_F(ReportHostsTest, MeasuredEnergyComesBeforeWattsThatWereGiven) {
  const Json measured =
      answer_of(report_of({.gpus = true, .cpu_energy = true}, {.watts = 1000}), "cost");
  const double lines = 24, gpus = 2 * 2 * 1250 * lines / 3.6e6, processors = 300 * lines / 3.6e6;
  EXPECT_NEAR(measured["facts"]["energy_kwh"].get<double>(), gpus + processors, 1e-9);
  EXPECT_NEAR(measured["facts"]["energy_gpus_kwh"].get<double>(), gpus, 1e-9);
  EXPECT_EQ(measured["facts"]["energy_source"], "measured");
  EXPECT_TRUE(measured["facts"].contains("energy_given_kwh"));
  EXPECT_EQ(measured["not_measured"][1]["what"], "energy of the processors of b");
  const Json given = answer_of(report_of({}, {.watts = 1000}), "cost")["facts"];
  EXPECT_EQ(given["energy_source"], "given");
  EXPECT_TRUE(answer_of(report_of({}), "cost")["facts"]["energy_kwh"].is_null());
}

TEST_F(ReportHostsTest, ARunWithoutSuchLinesSaysSo) {
  const Json processors = answer_of(report_of({.lines = false}), "processors");
  EXPECT_FALSE(processors["facts"].contains("use_of_hosts"));
  bool said = false;
  for (const Json& one : processors["not_measured"]) {
    said = said || one["how"].get<std::string>().find("monitor.every_seconds") == 0;
  }
  EXPECT_TRUE(said);
}

TEST_F(ReportHostsTest, ManyLinesAreDrawnAsTheirSpread) {
  HostHistory history;
  for (int host = 0; host < 12; ++host) {
    for (int i = 1; i <= 10; ++i) {
      history.add({{"event", "host"},
                   {"host", "n" + std::to_string(host)},
                   {"time", 5 * i},
                   {"seconds", 5},
                   {"cpu_share", 0.05 * host}});
    }
  }
  lockstep::Run run;
  run.history.hosts = history;
  std::vector<HostLine> lines;
  for (const HostSeries& host : run.history.hosts.hosts) {
    lines.push_back({host.name, &host, &HostRow::cpu_share});
  }
  const std::vector<PlotSeries> series = series_over_time(run, lines);
  ASSERT_EQ(series.size(), 3u);
  EXPECT_NEAR(series[0].points.at(3).y, 0, 1e-12);
  EXPECT_NEAR(series[1].points.at(3).y, 0.05 * 5.5, 1e-12);
  EXPECT_NEAR(series[2].points.at(3).y, 0.55, 1e-12);
}

}  // namespace
}  // namespace lockstep

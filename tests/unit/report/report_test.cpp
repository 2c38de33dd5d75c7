// Whole reports of invented runs: what their JSON finds, and what it does not.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "report/answers/known_link.h"
#include "report/answers/report_page.h"
#include "report/answers/report_text.h"
#include "support/expect_error.h"
#include "support/invented_run.h"
#include "support/report_parts.h"
#include "support/step_times.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct InventedStep {
  double compute = 0.8, wait = 0.05, data = 0.01;
};

struct InventedRun {
  int steps = 200, every = 20, hosts = 2;
  InventedStep step;
  int warned_at = 0;  // the run noticed a slow rank; 0: never
  int killed_at = 0;  // resumed from the evaluation before; 0: never
  bool overfits = false, levels = true;
  double link = 125e6;  // as the interfaces say, bytes per second; 0: nothing
  std::string device = "cpu", phase_clock;
  std::string end = "steps";
};

class ReportTest : public ::testing::Test {
 protected:
  fs::path make(const InventedRun& run) {
    const fs::path folder = folder_.path() / "nmt";
    fs::create_directories(folder / "logs");
    write_file(
        folder / "config.toml",
        "[task]\nname = \"translation\"\n[model]\nd_model = 64\n[optimizer]\nname = \"adam\"\n"
        "lr = 2.0\n[schedule]\nname = \"noam\"\nwarmup_steps = 50\n"
        "[evaluation]\nmetrics = [\"bleu\"]\n[comm]\nhook = \"none\"\n");
    write_file(folder / "version.txt", "lockstep 0.1.0\nhost a\n");
    write_file(folder / "logs/rank00.log",
               "2026-11-22 05:08:22.288 eval at step 200: bleu 30.00  (1.0 s)\n"
               "  source     a <b>\n  reference  c\n  output     d | e\n");
    write_file(folder / "metrics.jsonl", metrics(run));
    write_file(folder / "live.json", live(run).dump());
    return folder;
  }

  Json report_of(const fs::path& folder, const ReportOptions& options = {}) {
    report_ = make_report({folder}, options);
    return report_json(report_);
  }

  Report report_;

 private:
  std::string metrics(const InventedRun& run) {
    double time = 1000;
    std::string out;
    auto line = [&](Json json) {
      json["time"] = time;
      out += json.dump() + "\n";
    };
    line({{"event", "start"},
          {"first_step", 1},
          {"total_steps", run.steps},
          {"device", run.device},
          {"phase_clock", run.phase_clock}});
    for (int step = 1; step <= run.steps; ++step) {
      add_step(run, step, time, out);
      if (step == run.warned_at) {
        line({{"event", "slow_rank"},
              {"step", step},
              {"rank", 1},
              {"host", "b"},
              {"factor", 1.5},
              {"guess", "its machine computes more slowly"}});
      }
      if (step == run.killed_at) {
        const int back = step / run.every * run.every;
        time += 30;
        line({{"event", "resume"}, {"first_step", back + 1}, {"total_steps", run.steps}});
        for (int again = back + 1; again <= step; ++again) add_step(run, again, time, out);
      }
      if (step % run.every != 0) continue;
      time += 1;
      const double x = static_cast<double>(step) / run.steps;
      const double bleu = run.levels ? 30 - 25 * std::exp(-12 * x) : 30 * x;
      const double nll = run.overfits ? 3 - 2 * x + 2.5 * x * x : 2 + std::exp(-12 * x);
      line({{"event", "evaluation"},
            {"step", step},
            {"epoch", 0},
            {"seconds", 1.0},
            {"improved", {"bleu"}},
            {"eval/bleu", bleu + 0.01 * (step / run.every % 2)},
            {"eval/nll", nll}});
    }
    line({{"event", "end"}, {"reason", run.end}});
    return out;
  }

  static void add_step(const InventedRun& run, int step, double& time, std::string& out) {
    const InventedStep& s = run.step;
    const double seconds = s.compute + s.wait + s.data;
    time += seconds;
    const double rate =
        2.0 / std::sqrt(64.0) * std::min(1 / std::sqrt(step), step * std::pow(50, -1.5));
    out += Json{{"event", "step"},
                {"time", time},
                {"step", step},
                {"epoch", 0},
                {"train/loss", 4.0 - 2.0 * step / run.steps},
                {"train/nll", 4.0 - 2.0 * step / run.steps},
                {"train/learning_rate", rate},
                {"batch/targets", 1000},
                {"batch/sources", 900},
                {"batch/items", 40},
                {"time/step_seconds", seconds},
                {"time/compute_seconds", s.compute},
                {"time/wait_seconds", s.wait},
                {"time/data_seconds", s.data},
                {"comm/sent_bytes", 4'000'000}}
               .dump() +
           "\n";
  }

  static Json live(const InventedRun& run) {
    Json ranks = Json::array();
    const double step = run.step.compute + run.step.wait + run.step.data;
    for (int rank = 0; rank < 2; ++rank) {
      const double compute = run.step.compute;
      ranks.push_back(
          {{"rank", rank},
           {"host", rank < run.hosts ? std::string(1, static_cast<char>('a' + rank)) : "a"},
           {"step_seconds", step},
           {"compute_seconds", compute},
           {"wait_seconds", std::max(0.0, step - compute - run.step.data)},
           {"data_seconds", run.step.data},
           {"usage",
            {{"cores", 1.0},
             {"machine_cores", 2},
             {"machine_share", 0.5},
             {"memory_bytes", 1e9},
             {"interface", "eth0"},
             {"in_bytes_per_second", 4.2e6 / step},
             {"out_bytes_per_second", 4.2e6 / step},
             {"link_bytes_per_second", run.link}}}});
    }
    return {{"version", 1},  {"state", "ended"},   {"size", 2},
            {"unit", "tok"}, {"slowest", nullptr}, {"ranks", ranks}};
  }

  TemporaryFolder folder_;
};

TEST_F(ReportTest, AHealthyRunHasNoFindings) {
  const Json report = report_of(make({}));
  EXPECT_EQ(findings_of(report), std::set<std::string>{});
  EXPECT_EQ(answer_of(report, "trained")["facts"]["trend"], "level");
  EXPECT_EQ(answer_of(report, "overfitting")["facts"]["overfitting"], "none");
  EXPECT_EQ(answer_of(report, "network")["facts"]["bottleneck"], nullptr) << "it has no times/";
  EXPECT_EQ(report["answers"].size(), 16u);
  EXPECT_EQ(report["answers"][10]["number"], 11);
}

// A corpus of thousands of packages does not make a report of thousands of lines.
TEST_F(ReportTest, OfManyInputsTheFirstAreListedAndAllCounted) {
  const fs::path run = make({});
  Json inputs = Json::array();
  for (int i = 0; i < 2085; ++i) {
    inputs.push_back({{"name", fmt::format("p{}.deb", i)}, {"bytes", 1000000}, {"sha256", "00"}});
  }
  write_file(run / "corpus.json", Json{{"inputs", inputs}}.dump());
  const std::string repeat = answer_of(report_of(run), "repeat").dump();
  EXPECT_NE(repeat.find("made of 2,085 files, 2.1 GB"), std::string::npos) << repeat;
  EXPECT_NE(repeat.find("all of them in corpus.json"), std::string::npos) << repeat;
  const TextTable& table = report_.answers.back().tables.back();
  ASSERT_EQ(report_.answers.back().id, "repeat");
  EXPECT_EQ(table.rows.size(), 20u);
  EXPECT_EQ(table.rows.back().front(), "p19.deb");
}

TEST_F(ReportTest, AKilledAndResumedRunSaysSo) {
  const Json report = report_of(make({.killed_at = 130}));
  EXPECT_EQ(findings_of(report), std::set<std::string>{"interrupted"});
  const Json facts = answer_of(report, "failures")["facts"];
  EXPECT_EQ(facts["attempts"], 2);
  EXPECT_EQ(facts["repeated_steps"], 10);
  EXPECT_NEAR(answer_of(report, "duration")["facts"]["parts"]["interrupted"].get<double>(), 30,
              1e-6);
}

TEST_F(ReportTest, ASlowRankThatTheRunNoticedIsTold) {
  const Json report = report_of(make({.warned_at = 120}));
  EXPECT_EQ(findings_of(report), std::set<std::string>{"slow_rank"});
  const std::string evidence = answer_of(report, "processors")["evidence"].dump();
  EXPECT_NE(evidence.find("at step 120: rank 1 on b was 1.50 times as slow as the others: its "
                          "machine computes more slowly"),
            std::string::npos)
      << evidence;
}

TEST_F(ReportTest, TheRingFormulaStandsBesideTheMeasuredBytes) {
  const Json facts = answer_of(report_of(make({})), "traffic")["facts"];
  EXPECT_DOUBLE_EQ(facts["predicted_bytes"].get<double>(), 4e6);
  EXPECT_NEAR(facts["measured_bytes"].get<double>(), 4.2e6, 1);
}

TEST_F(ReportTest, OverfittingAndARunThatIsNotDoneAreFound) {
  EXPECT_TRUE(findings_of(report_of(make({.overfits = true}))).contains("overfitting"));
  EXPECT_TRUE(findings_of(report_of(make({.levels = false}))).contains("still_improving"));
}

TEST_F(ReportTest, TheRecordedLearningRateIsThatOfTheFormula) {
  const Json facts = answer_of(report_of(make({})), "learning_rate")["facts"];
  EXPECT_EQ(facts["compared_steps"], 200);
  EXPECT_LT(facts["largest_deviation"].get<double>(), 1e-9);
}

TEST_F(ReportTest, WhatIsNotMeasuredIsNullAndSaidSo) {
  const Json without = report_of(make({}));
  EXPECT_TRUE(answer_of(without, "cost")["facts"]["cost"].is_null());
  EXPECT_TRUE(answer_of(without, "processors")["facts"]["mfu"].is_null());
  EXPECT_FALSE(answer_of(without, "processors")["not_measured"].empty());
  const Json with = report_of(make({}), {.price_per_hour = 3.6, .watts = 100});
  const double hours = answer_of(with, "cost")["facts"]["host_hours"];
  EXPECT_NEAR(answer_of(with, "cost")["facts"]["cost"].get<double>(), 3.6 * hours, 1e-9);
  EXPECT_NEAR(answer_of(with, "cost")["facts"]["energy_kwh"].get<double>(), 0.1 * hours, 1e-9);
}

TEST_F(ReportTest, ARunThatHasHardlyBegunAndOneWithoutMetricsAreReported) {
  const fs::path folder = make({.steps = 2});
  EXPECT_EQ(answer_of(report_of(folder), "trained")["facts"]["trend"], "not_measured");
  fs::remove(folder / "metrics.jsonl");
  fs::remove(folder / "live.json");
  EXPECT_NE(
      answer_of(report_of(folder), "duration")["answer"].get<std::string>().find("did not begin"),
      std::string::npos);
  report_page(report_);
  EXPECT_THROW(make_report({folder / "nothing"}, {}), ConfigError);
}

TEST_F(ReportTest, ThePageNeedsNoNetworkAndItsTextIsSafe) {
  report_of(make({}));
  const std::string page = report_page(report_);
  EXPECT_NE(page.find("a &lt;b&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(page.find("<script src"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  const std::string markdown = report_markdown(report_);
  EXPECT_NE(markdown.find("| a <b> | c | d \\| e |"), std::string::npos);
  EXPECT_NE(markdown.find("## 11. "), std::string::npos);
  if (!chart_library().script.empty()) {
    EXPECT_NE(page.find("id=\"chart-loss\""), std::string::npos);
    EXPECT_NE(page.find("Vanderkam"), std::string::npos) << "the licence goes with the library";
  }
}

// The same run with times/, whose figures count then.
class ReportWithTimes : public ReportTest {
 protected:
  Json report_with(const std::function<void(int64_t, int, RankTimes&)>& change,
                   const InventedRun& run = {}) {
    const fs::path folder = make(run);
    write_times(folder, {.last = 200, .change = [&](int64_t step, int rank, RankTimes& t) {
                           t = {.data = 0.01F,
                                .forward = 0.3F,
                                .backward = 0.45F,
                                .wait = 0.05F,
                                .optimizer = 0.04F,
                                .other = 0.01F,
                                .hidden = 0.1F,
                                .peers = 0.02F,
                                .sent_bytes = 4.1e6F,
                                .received_bytes = 4.1e6F};
                           if (change) change(step, rank, t);
                         }});
    return report_of(folder);
  }
};

TEST_F(ReportWithTimes, AHealthyRunHasNoFindingsAndAWaterfallOfPhases) {
  const Json report = report_with(nullptr);
  EXPECT_EQ(findings_of(report), std::set<std::string>{});
  const Json facts = answer_of(report, "duration")["facts"];
  EXPECT_NEAR(facts["parts"]["forward"].get<double>(), 60, 0.01);
  EXPECT_NEAR(facts["parts"]["backward"].get<double>(), 90, 0.01);
  EXPECT_NEAR(facts["parts"]["exposed communication"].get<double>(), 6, 0.01);
  EXPECT_NEAR(facts["parts"]["waiting for peers"].get<double>(), 4, 0.01);
  EXPECT_NEAR(facts["hidden_communication_seconds"].get<double>(), 20, 0.01);
  EXPECT_FALSE(facts["parts"].contains("compute"));
  EXPECT_TRUE(answer_of(report, "duration")["not_measured"].empty());
  double sum = 0;
  for (const auto& [name, seconds] : facts["parts"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, facts["wall_seconds"].get<double>(), 0.01) << "what is hidden is not in it";

  const Json ranks = answer_of(report, "processors")["facts"]["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1]["host"], "b");
  EXPECT_NEAR(ranks[1]["computing_share"].get<double>(), 0.79 / 0.86, 1e-4);
  const Json network = answer_of(report, "network")["facts"];
  EXPECT_NEAR(network["exposed_seconds"].get<double>(), 0.03, 1e-5);
  EXPECT_NEAR(network["hidden_seconds"].get<double>(), 0.1, 1e-5);
  EXPECT_NEAR(network["exchange_bytes_per_second"].get<double>(), 4.1e6 / 0.13, 1e3);
  EXPECT_NEAR(network["link_share_of_exchange"].get<double>(), 4.1e6 / 0.13 / 125e6, 1e-3);
  const Json traffic = answer_of(report, "traffic")["facts"];
  EXPECT_NEAR(traffic["measured_bytes"].get<double>(), 4.1e6, 1);
  EXPECT_NEAR(traffic["sent_bytes"].get<double>(), 4.1e6, 1);
  report_page(report_);
}

// Whether an answer says that the speed of the link is not known, and how to find out.
bool asks_for_the_link(const Json& answer) {
  for (const Json& one : answer["not_measured"]) {
    if (one["what"] != "link speed not known") continue;
    return one["how"].get<std::string>().find("lockstep doctor") != std::string::npos;
  }
  return false;
}

TEST_F(ReportWithTimes, ALinkOfWhichNobodyKnowsTheSpeedGetsNone) {
  const Json report = report_with(nullptr, {.link = 0});
  for (const char* id : {"network", "traffic"}) {
    const Json answer = answer_of(report, id);
    EXPECT_TRUE(asks_for_the_link(answer)) << id;
    EXPECT_TRUE(answer["facts"]["link_bytes_per_second"].is_null()) << id;
    EXPECT_FALSE(answer["facts"].contains("predicted_seconds"));
    EXPECT_FALSE(answer["facts"].contains("link_share_of_exchange"));
  }
  EXPECT_NE(report_markdown(report_).find("link speed not known"), std::string::npos);
}

TEST_F(ReportWithTimes, ALinkIsThatOfTheFirstSourceThatKnowsIt) {
  const auto link_of = [&](const fs::path& folder, const ReportOptions& options = {}) {
    return answer_of(report_of(folder, options), "traffic")["facts"];
  };
  report_with(nullptr, {.link = 0});
  const fs::path folder = make({.link = 0});
  const auto plan = [&](const char* source, bool at_least) {
    write_file(
        folder / "plan.json",
        Json{{"network", {{"source", source}, {"bytes_per_second", 50e6}, {"at_least", at_least}}}}
            .dump());
  };
  plan("fitted on sums", false);
  EXPECT_EQ(link_of(folder)["link_bytes_per_second"], 50e6);
  EXPECT_EQ(link_of(folder)["link_source"], "as lockstep plan measured it");
  EXPECT_DOUBLE_EQ(link_of(folder)["predicted_seconds"].get<double>(), 4e6 / 50e6);
  plan("fitted on sums", true);
  EXPECT_EQ(link_of(folder)["link_source"], "at least, as lockstep plan measured it");
  plan("as given", false);
  EXPECT_EQ(link_of(folder)["link_source"], "as it was given to lockstep plan");
  EXPECT_EQ(link_of(make({}))["link_source"], "as the interfaces say");
  EXPECT_EQ(link_of(folder, {.measured_link = 80e6})["link_bytes_per_second"], 80e6);
  EXPECT_EQ(link_of(folder, {.link_bytes_per_second = 90e6, .measured_link = 80e6})["link_source"],
            "as given (--bandwidth)");
}

TEST(DoctorLinkSpeed, IsThatOfTheSlowestWay) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "doctor.json";
  write_file(file, R"({"links":[{"to_streams":2e8,"from_streams":1.5e8},)"
                   R"({"to_streams":0,"from_streams":0,"failure":"no way"}]})");
  EXPECT_EQ(doctor_link_speed(file), 1.5e8);
  write_file(file, R"({"links":[]})");
  EXPECT_ERROR(doctor_link_speed(file), DataError, "no link was measured");
  write_file(file, "Hosts:");
  EXPECT_ERROR(doctor_link_speed(file), DataError, "is not what `lockstep doctor --json` prints");
}

TEST_F(ReportWithTimes, WithTheGpusOwnClockVerdictsRestOnIt) {
  const auto bound = [](int64_t, int, RankTimes& t) { t.wait += 0.4F; };
  const Json gpus = report_with(bound, {.device = "cuda:0", .phase_clock = "device"});
  EXPECT_TRUE(findings_of(gpus).contains("network_bound"));
  for (const char* id : {"processors", "network", "traffic"}) {
    const Json answer = answer_of(gpus, id);
    EXPECT_EQ(answer["facts"]["phases_by_host_clock_ahead_of_gpus"], false) << id;
    EXPECT_NE(answer["evidence"].dump().find("Phases are by the GPUs' own clock"),
              std::string::npos);
  }
  EXPECT_EQ(answer_of(gpus, "network")["facts"]["bottleneck"], true);
}

TEST_F(ReportWithTimes, WithGpusPhasesAreTheHostsAndNoVerdictRestsOnThem) {
  const auto bound = [](int64_t, int, RankTimes& t) { t.wait += 0.4F; };
  const Json cpus = report_with(bound);
  EXPECT_TRUE(findings_of(cpus).contains("network_bound"));
  EXPECT_EQ(answer_of(cpus, "processors")["facts"]["phases_by_host_clock_ahead_of_gpus"], false);
  const Json gpus = report_with(bound, {.device = "cuda:0"});
  EXPECT_FALSE(findings_of(gpus).contains("network_bound"));
  for (const char* id : {"processors", "network", "traffic"}) {
    const Json answer = answer_of(gpus, id);
    EXPECT_EQ(answer["facts"]["phases_by_host_clock_ahead_of_gpus"], true) << id;
    EXPECT_NE(answer["evidence"].dump().find("Phases are by the host's clock"), std::string::npos);
  }
  const Json network = answer_of(gpus, "network");
  EXPECT_TRUE(network["facts"]["bottleneck"].is_null());
  EXPECT_NE(network["answer"].get<std::string>().find("Not decided"), std::string::npos);
  EXPECT_NEAR(network["facts"]["most_waiting_share"].get<double>(), 0.49 / 1.26, 1e-4);
  const Json light = answer_of(report_with(nullptr, {.device = "cuda:0"}), "network");
  EXPECT_EQ(light["facts"]["bottleneck"], false) << "even the most that it can be is little";
  EXPECT_FALSE(network["facts"].contains("what_if"));
  EXPECT_NE(answer_of(gpus, "processors")["answer"].get<std::string>().find("By the host's clock"),
            std::string::npos);
}

TEST_F(ReportWithTimes, ASlowRankIsNamedWithItsHost) {
  const Json report = report_with([](int64_t, int rank, RankTimes& t) {
    if (rank == 1) t.backward += 0.3F;
    if (rank == 0) t.wait += 0.3F;
    if (rank == 0) t.peers += 0.3F;
  });
  EXPECT_EQ(findings_of(report), std::set<std::string>{"slow_rank"});
  const Json slowest = answer_of(report, "processors")["facts"]["slowest"];
  EXPECT_EQ(slowest["rank"], 1);
  EXPECT_EQ(slowest["host"], "b");
  EXPECT_EQ(slowest["phase"], "backward");
  EXPECT_EQ(answer_of(report, "network")["facts"]["bottleneck"], false);
}

TEST_F(ReportWithTimes, ASlowNetworkIsTheBottleneck) {
  const Json report = report_with([](int64_t, int, RankTimes& t) { t.wait += 0.6F; });
  EXPECT_EQ(findings_of(report), std::set<std::string>{"network_bound"});
  const Json what_if = answer_of(report, "network")["facts"]["what_if"];
  const double step = 0.86 + 0.6, exposed = 0.63;
  EXPECT_NEAR(what_if["a network without cost"]["high"].get<double>(), step / (step - exposed),
              1e-3);
  EXPECT_NEAR(what_if["bf16 on the wire"]["high"].get<double>(),
              step / (step - exposed + (exposed - 0.1) / 2), 1e-3);
}

TEST_F(ReportWithTimes, SpansAreDrawn) {
  const fs::path folder = make({});
  write_span_file(folder / "trace" / "steps_11-14.json", invented_spans(11, 14, 1010));
  report_of(folder);
  EXPECT_NE(report_page(report_).find("Timeline of steps 11 to 14"), std::string::npos);
  EXPECT_NE(report_markdown(report_).find("figures/timeline.svg"), std::string::npos);
}

}  // namespace
}  // namespace lockstep

#include "report/compare/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/compare/comparison_plots.h"
#include "report/compare/comparison_table.h"
#include "report/run/run_history.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

// A run folder with a line for each step; an evaluation after each epoch.
struct FakeRun {
  int epochs = 2, steps = 5;  // steps an epoch
  double seconds = 0.5, items = 8;
  std::string config = "[run]\nseed = 1\n[evaluation]\nmetrics = ['acc1']\n";
  std::string end = "epochs";             // empty: it did not end
  int ranks = 1, hosts = 1, threads = 0;  // threads 0: live.json does not say
};

std::string step_line(int step, int epoch, double seconds, double items) {
  return nlohmann::json{{"event", "step"},
                        {"time", 100 + step},
                        {"step", step},
                        {"epoch", epoch},
                        {"train/loss", 2.0 - 0.1 * epoch},
                        {"batch/items", items},
                        {"time/step_seconds", seconds},
                        {"time/wait_seconds", seconds / 5},
                        {"time/data_seconds", 0}}
             .dump() +
         "\n";
}

void write_run(const fs::path& folder, const FakeRun& run) {
  fs::create_directories(folder);
  write_file(folder / "config.toml", run.config);
  std::string lines =
      fmt::format("{{\"event\":\"start\",\"time\":100,\"first_step\":1,\"total_steps\":{}}}\n",
                  run.epochs * run.steps);
  for (int epoch = 0, step = 1; epoch < run.epochs; ++epoch) {
    for (int i = 0; i < run.steps; ++i, ++step) {
      lines += step_line(step, epoch, run.seconds, run.items);
    }
    lines += fmt::format(
        "{{\"event\":\"evaluation\",\"time\":{0},\"step\":{1},\"epoch\":{2},\"improved\":{3},"
        "\"eval/acc1\":{4}}}\n",
        100 + step, step - 1, epoch, epoch == 0 ? "[\"acc1\"]" : "[]", epoch == 0 ? 60 : 55);
  }
  if (!run.end.empty()) {
    lines += fmt::format("{{\"event\":\"end\",\"time\":120,\"reason\":\"{}\"}}\n", run.end);
  }
  write_file(folder / "metrics.jsonl", lines);
  nlohmann::json ranks = nlohmann::json::array();
  for (int i = 0; i < run.ranks; ++i)
    ranks.push_back({{"host", fmt::format("h{}", i % run.hosts)}});
  nlohmann::json live = {{"size", run.ranks}, {"ranks", ranks}, {"state", "ended"}};
  if (run.threads > 0) live["threads"] = run.threads;
  write_file(folder / "live.json", live.dump());
}

TEST(RunReader, ReadsEpochsMetricsTimesAndPlace) {
  TemporaryFolder folder;
  write_run(folder.path() / "a", {.ranks = 4, .hosts = 2});
  const RunFigures run = read_run(folder.path() / "a");
  EXPECT_EQ(run.state, "finished");
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(run.hosts, 2);
  EXPECT_EQ(run.metric, "acc1");
  EXPECT_EQ(run.best, 60);
  EXPECT_EQ(run.last, 55);
  ASSERT_EQ(run.epochs.size(), 2u);
  EXPECT_TRUE(run.epochs[1].complete);
  EXPECT_NEAR(*run.epoch_seconds, 2.5, 1e-9) << "5 steps of 0.5 s, the first epoch left out";
  EXPECT_NEAR(*run.epoch_wait_seconds, 0.5, 1e-9);
  EXPECT_NEAR(*run.items_per_second, 16, 1e-9);
  EXPECT_NEAR(*run.wait_share, 0.2, 1e-9);
  EXPECT_NEAR(*run.loss, 1.9, 1e-9);
  EXPECT_NEAR(*run.wall_seconds, 20, 1e-9);
  ASSERT_EQ(run.evaluations.size(), 2u);
  EXPECT_NEAR(*run.evaluations[1].epoch, 2, 1e-9);
  EXPECT_NEAR(run.evaluations[1].training_seconds, 5, 1e-9);
}

TEST(RunReader, OfARepeatedStepTheLaterOneCounts) {
  TemporaryFolder folder;
  write_run(folder.path(), {.epochs = 1, .end = ""});
  std::string lines = read_file(folder.path() / "metrics.jsonl");
  lines += "{\"event\":\"resume\",\"time\":500,\"first_step\":4,\"total_steps\":5}\n" +
           step_line(4, 0, 2, 8) + step_line(5, 0, 2, 8) +
           "{\"event\":\"end\",\"time\":510,\"reason\":\"epochs\"}\n";
  write_file(folder.path() / "metrics.jsonl", lines);
  const RunFigures run = read_run(folder.path());
  EXPECT_EQ(run.state, "finished");
  EXPECT_NEAR(*run.training_seconds, 3 * 0.5 + 2 * 2, 1e-9);
  EXPECT_TRUE(run.evaluations.empty()) << "that of step 5 was to be done again";
  EXPECT_FALSE(run.best);
  EXPECT_NEAR(*run.wall_seconds, 6 + 10, 1e-9) << "not the time between the attempts";
}

TEST(RunReader, SaysWhatIsMissingAndWhatIsDamaged) {
  TemporaryFolder folder;
  EXPECT_ERROR(read_run(folder.path()), ConfigError, "holds no run");
  write_run(folder.path(), {.epochs = 1, .end = ""});
  RunFigures run = read_run(folder.path());
  EXPECT_EQ(run.state, "unfinished");
  EXPECT_FALSE(run.epoch_seconds) << "nobody knows whether the epoch was over";
  const std::string lines = read_file(folder.path() / "metrics.jsonl");
  write_file(folder.path() / "metrics.jsonl", lines + "{\"event\":\"st");
  EXPECT_EQ(read_run(folder.path()).steps, 5) << "a last line cut short by a kill";
  write_file(folder.path() / "metrics.jsonl", "broken\n" + lines);
  EXPECT_ERROR(read_run(folder.path()), DataError, "metrics.jsonl:1: is no line of metrics");
  write_file(folder.path() / "metrics.jsonl",
             "{\"event\": \"step\", \"step\": 4e74, \"epoch\": -1e300, \"time\": 1}\n");
  EXPECT_EQ(read_history(folder.path() / "metrics.jsonl").steps.at(0).step, 0);
  write_file(folder.path() / "metrics.jsonl", "{\"event\": 2}\n{}\n");
  EXPECT_ERROR(read_run(folder.path()), DataError, "metrics.jsonl:1: is no line of metrics");
}

std::string config_of(const std::string& lr, int seed) {
  return fmt::format(
      "[run]\nseed = {}\nfolder = 'x{}'\n[optimizer]\nlr = {}\n[evaluation]\nmetrics = ['acc1']\n",
      seed, seed, lr);
}

// Two learning rates, two repeats, on one and two ranks; one of them did not end.
Comparison eight_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  for (const char* lr : {"0.1", "0.2"}) {
    for (int ranks : {1, 2}) {
      for (int seed : {1, 2}) {
        runs.push_back(folder / fmt::format("lr{}-{}-{}", lr, ranks, seed));
        const bool ends = runs.size() != 8;
        write_run(runs.back(), {.seconds = 0.5 + 0.1 * (seed - 1),
                                .items = 6.0 * ranks,
                                .config = config_of(lr, seed),
                                .end = ends ? "epochs" : "",
                                .ranks = ranks});
      }
    }
  }
  return compare_runs(read_compared(runs));
}

TEST(Comparison, TakesRepeatsTogetherAndSaysWhatDiffers) {
  TemporaryFolder folder;
  const Comparison c = eight_runs(folder.path());
  EXPECT_EQ(c.keys, std::vector<std::string>{"optimizer.lr"});
  EXPECT_EQ(c.metric, "acc1");
  ASSERT_EQ(c.groups.size(), 4u);
  const Spread& epoch = c.groups[0].figures.at("epoch_seconds");
  EXPECT_EQ(epoch.count, 2);
  EXPECT_NEAR(epoch.mean, 2.75, 1e-9);
  EXPECT_NEAR(epoch.deviation, 0.35355, 1e-4) << "of 2.5 and 3.0, over n - 1";
  EXPECT_EQ(c.groups[3].figures.at("epoch_seconds").count, 1) << "the unfinished one is in no mean";
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_NE(c.notes[0].find("unfinished at step 10 of 10"), std::string::npos);
}

TEST(Comparison, ScalesAgainstTheFewestRanks) {
  TemporaryFolder folder;
  const Comparison c = eight_runs(folder.path());
  EXPECT_NEAR(*c.groups[0].speedup, 1, 1e-9);
  EXPECT_NEAR(*c.groups[1].speedup, 2, 1e-9);
  EXPECT_NEAR(*c.groups[1].efficiency, 1, 1e-9);
}

TEST(Comparison, CountsCoresWhereRunsTellTheirThreads) {
  TemporaryFolder folder;
  const auto speeds = [&](const std::string& name, int threads_of_one, int threads_of_two) {
    const fs::path one = folder.path() / (name + "1"), two = folder.path() / (name + "2");
    write_run(one, {.items = 10, .ranks = 1, .threads = threads_of_one});
    write_run(two, {.items = 9, .ranks = 2, .threads = threads_of_two});
    return compare_runs(read_compared({one, two})).groups;
  };
  const std::vector<ComparedGroup> equal = speeds("equal", 2, 1);
  EXPECT_NEAR(*equal[1].speedup, 0.9, 1e-9);
  EXPECT_NEAR(*equal[1].efficiency, 0.9, 1e-9) << "two cores each";
  EXPECT_NEAR(*speeds("more", 1, 1)[1].efficiency, 0.45, 1e-9);
  EXPECT_NEAR(*speeds("unknown", 2, 0)[1].efficiency, 0.45, 1e-9)
      << "one does not say: ranks count";
}

TEST(Comparison, TablesHaveALineAGroup) {
  TemporaryFolder folder;
  const Comparison c = eight_runs(folder.path());
  const std::string text = comparison_text(c);
  EXPECT_NE(text.find("best acc1"), std::string::npos) << text;
  EXPECT_NE(text.find("2.75 ± 0.35"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 2  unfinished"), std::string::npos) << text;
  const std::string csv = comparison_csv(c);
  EXPECT_TRUE(csv.starts_with("optimizer.lr,setup,hosts,ranks,delay_ms,")) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  const auto json = comparison_json(c);
  EXPECT_EQ(json["groups"].size(), 4u);
  EXPECT_EQ(json["groups"][0]["figures"]["epoch_seconds"]["count"], 2);
  EXPECT_EQ(json["runs"].size(), 8u);
  const std::string epochs = epochs_csv(c);
  EXPECT_EQ(std::count(epochs.begin(), epochs.end(), '\n'), 1 + 8 * 2);
}

TEST(Comparison, DrawsWhatThereIsDataFor) {
  TemporaryFolder folder;
  std::vector<std::string> names;
  for (const Figure& figure : comparison_figures(eight_runs(folder.path()))) {
    names.push_back(figure.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"epoch-time-optimizer-lr", "acc1-optimizer-lr", "acc1-epoch",
                                      "acc1-seconds", "loss-epoch", "speed-up", "efficiency"}));
}

TEST(Comparison, DrawsTheFurtherMetricsThatAllRunsHave) {
  TemporaryFolder folder;
  Comparison c = eight_runs(folder.path());
  EXPECT_TRUE(c.further.empty());
  for (ComparedRun& run : c.runs) {
    run.run->further = {"f1", "recall"};
    for (EvaluationFigures& e : run.run->evaluations) e.metrics["f1"] = 0.5;
  }
  c.runs.back().run->further = {"f1"};
  c = compare_runs(std::move(c.runs));
  EXPECT_EQ(c.further, std::vector<std::string>{"f1"});
  const std::vector<Figure> figures = comparison_figures(c);
  const auto f1 = std::find_if(figures.begin(), figures.end(),
                               [](const Figure& f) { return f.name == "f1-epoch"; });
  ASSERT_NE(f1, figures.end());
  EXPECT_EQ(f1->panels.front().series.front().points.front().y, 0.5);
}

TEST(Comparison, DrawsSetupsThatAloneDifferInOnePanel) {
  TemporaryFolder folder;
  const auto curve = [](const Comparison& c) {
    const std::vector<Figure> figures = comparison_figures(c);
    return *std::find_if(figures.begin(), figures.end(),
                         [](const Figure& f) { return f.name == "acc1-epoch"; });
  };
  const Figure both = curve(eight_runs(folder.path()));
  EXPECT_EQ(both.panels.size(), 2u) << "rates in each";
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  write_run(one, {.config = config_of("0.1", 1), .ranks = 1});
  write_run(two, {.config = config_of("0.1", 1), .ranks = 2});
  const Figure setups = curve(compare_runs(read_compared({one, two})));
  ASSERT_EQ(setups.panels.size(), 1u);
  ASSERT_EQ(setups.panels[0].series.size(), 2u);
  EXPECT_EQ(setups.panels[0].series[1].name, "1x2");
}

TEST(Comparison, CellsThatDidNotBeginAreThere) {
  TemporaryFolder folder;
  const SweepFolder sweep{folder.path()};
  CellRecord done{.name = "a", .values = {{"optimizer.lr", "0.1"}}, .state = "done"};
  CellRecord waiting{.name = "b", .values = {{"optimizer.lr", "0.2"}}};
  waiting.network = NetworkCondition{.delay_ms = 20, .rate_mbit = 100};
  waiting.setup = {2, 1};
  write_cell(sweep, done);
  write_cell(sweep, waiting);
  write_sweep_index(sweep, {"a", "b"});
  write_run(sweep.run("a"), {.config = config_of("0.1", 1)});
  const Comparison c = compare_runs(read_compared({folder.path()}));
  EXPECT_EQ(c.keys, std::vector<std::string>{"optimizer.lr"});
  ASSERT_EQ(c.groups.size(), 2u);
  EXPECT_EQ(network_text(*c.groups[1].network), "20 ms, 100 Mbit/s");
  EXPECT_NE(comparison_text(c).find("0 of 1  waiting"), std::string::npos) << comparison_text(c);
  write_file(sweep.record("b"), "{");
  EXPECT_ERROR(read_compared({folder.path()}), DataError, "cell.json: is damaged");
}

TEST(Spread, HasAsManyDigitsAsItsDeviationGives) {
  EXPECT_EQ(spread_text(spread_of({})), "-");
  EXPECT_EQ(spread_text(spread_of({12.345})), "12.35");
  EXPECT_EQ(spread_text(spread_of({1, 2, 3})), "2.0 ± 1.0");
  EXPECT_EQ(spread_text(spread_of({100.1, 100.2})), "100.150 ± 0.071");
  EXPECT_EQ(spread_text(spread_of({2e-5})), "2e-05");
}

}  // namespace
}  // namespace lockstep

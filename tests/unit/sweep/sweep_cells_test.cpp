#include "sweep/sweep_cells.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "sweep/sweep_runner.h"
#include "train/config/run_config.h"

namespace lockstep {
namespace {

class Sweeps : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_.path() / "base.toml",
               "[task]\nname = 'translation'\n[data]\ncorpus = 'c'\n[batch]\nsentences = 8\n");
  }

  SweepConfig config(const std::string& more, const std::vector<std::string>& words = {}) {
    const fs::path file = folder_.path() / "s.toml";
    write_file(file,
               fmt::format("[sweep]\nbase = 'base.toml'\nfolder = '{}'\noversubscribe = true\n",
                           (folder_.path() / "out").string()) +
                   more);
    return read_sweep_config(file, words);
  }

  std::vector<SweepCell> cells(const std::string& more) { return expand_sweep(config(more)); }

  static std::vector<std::string> names(const std::vector<SweepCell>& cells) {
    std::vector<std::string> out;
    for (const SweepCell& cell : cells) out.push_back(cell.record.name);
    return out;
  }

  // The effective configuration's value of a key.
  static std::string value(const SweepCell& cell, const std::string& key) {
    for (const WrittenEntry& entry : ConfigSource::from_text(cell.config, "").take_below("")) {
      if (entry.key == key) return entry.value.text;
    }
    return "no " + key;
  }

  TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(Sweeps, EveryCombinationIsACell) {
  const auto all =
      cells("setups = ['1x1', '1x2']\nrepeats = 2\n[grid]\n'optimizer.lr' = [0.1, 2e-4]\n");
  EXPECT_EQ(names(all), (Names{"lr-0.1_1x1_seed-1", "lr-0.1_1x1_seed-2", "lr-0.1_1x2_seed-1",
                               "lr-0.1_1x2_seed-2", "lr-0.0002_1x1_seed-1", "lr-0.0002_1x1_seed-2",
                               "lr-0.0002_1x2_seed-1", "lr-0.0002_1x2_seed-2"}));
  EXPECT_EQ(value(all[3], "optimizer.lr"), "0.1");
  EXPECT_EQ(value(all[3], "run.seed"), "2");
  EXPECT_EQ(value(all[3], "run.folder"),
            (folder_.path() / "out/cells/lr-0.1_1x2_seed-2/run").string());
}

TEST_F(Sweeps, KeysOfEveryTypeMayVary) {
  const auto all = cells(
      "[grid]\n'run.precision' = ['fp32', 'bf16']\n'run.fused' = [true, false]\n"
      "'training.freeze' = [[], ['a.*', 'b']]\n");
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(value(all[7], "run.precision"), "bf16");
  EXPECT_EQ(value(all[7], "run.fused"), "false");
  EXPECT_NE(value(all[7], "training.freeze").find("a.*"), std::string::npos);
}

TEST_F(Sweeps, CellsOfAListGoWithEachOfTheGrid) {
  const auto all = cells(
      "[set]\n'optimizer.name' = 'adamw'\n[grid]\n'optimizer.lr' = [1, 2]\n"
      "[[cell]]\n'model.d_model' = 64\n'model.heads' = 2\n[[cell]]\n'model.d_model' = 128\n");
  EXPECT_EQ(names(all),
            (Names{"lr-1_d-model-64_heads-2_1x1_seed-1", "lr-2_d-model-64_heads-2_1x1_seed-1",
                   "lr-1_d-model-128_1x1_seed-1", "lr-2_d-model-128_1x1_seed-1"}));
  EXPECT_EQ(value(all[0], "model.heads"), "2");
  EXPECT_EQ(value(all[2], "optimizer.name"), "adamw");
}

TEST_F(Sweeps, ValuesPerRankAreMultipliedByTheRanks) {
  const auto all = cells(
      "setups = ['1x1', '2x2']\nper_rank = ['batch.sentences']\n[grid]\n'batch.sentences' = [1, "
      "4]\n");
  EXPECT_EQ(value(all[3], "batch.sentences"), "16");
  EXPECT_EQ(all[3].record.values[0],
            (std::pair<std::string, std::string>("batch.sentences per rank", "4")));
  const auto of_base = cells("setups = ['1x3']\nper_rank = ['batch.sentences']\n");
  EXPECT_EQ(value(of_base[0], "batch.sentences"), "24");
}

TEST_F(Sweeps, NetworksAreThoseOfSeveralHostsOnly) {
  const SweepConfig c = config(
      "setups = ['1x1', '2x1']\nseeds = [7]\n[network]\ndelay_ms = [0, 20]\nrate_mbit = [100]\n");
  const auto all = expand_sweep(c);
  EXPECT_EQ(names(all), (Names{"1x1_seed-7", "2x1_0ms_100mbit_seed-7", "2x1_20ms_100mbit_seed-7"}));
  EXPECT_FALSE(all[0].record.network);
  const std::string lab = lab_toml(c, all[2].record);
  EXPECT_NE(lab.find("delay_ms = 20\nrate_mbit = 100\n"), std::string::npos) << lab;
  EXPECT_NE(lab.find("names = [\"node1\", \"node2\"]"), std::string::npos) << lab;
}

TEST_F(Sweeps, ACellIsALaunch) {
  const SweepConfig c = config("setups = ['1x2', '2x3']\nthreads = 2\n");
  const auto all = expand_sweep(c);
  Names here = cell_command(c, all[0], false);
  const std::string program = here[0], out = (folder_.path() / "out/cells").string();
  EXPECT_EQ(here, (Names{program, "launch", "-n", "2", "-x", "OMP_NUM_THREADS=2", "--", "train",
                         out + "/1x2_seed-1/config.toml"}));
  EXPECT_EQ(cell_command(c, all[1], true),
            (Names{program, "netlab", "run", out + "/2x3_0ms_seed-1/lab.toml", "--", program,
                   "launch", "-H", "node1:3,node2:3", "-x", "OMP_NUM_THREADS=2", "--", "train",
                   out + "/2x3_0ms_seed-1/config.toml", "--resume"}));
}

TEST_F(Sweeps, RealHostsAreTheFirstOfTheList) {
  const SweepConfig c =
      config("setups = ['2x2']\n[hosts]\nlist = 'a,user@b,c'\noptions = ['--interface', 'eth0']\n");
  const auto all = expand_sweep(c);
  EXPECT_EQ(all[0].record.name, "2x2_seed-1");
  EXPECT_EQ(hosts_file(c, all[0].record), "a slots=2\nb slots=2 ssh=user@b\n");
  const Names words = cell_command(c, all[0], false);
  EXPECT_EQ(words[1], "launch");
  EXPECT_EQ(words[4], "--interface");
  // They need not see this disk: the base and words over it.
  EXPECT_EQ(words[7], "train");
  EXPECT_TRUE(words[8].ends_with("base.toml"));
  EXPECT_EQ(words.back(), "run.seed=1");
}

TEST_F(Sweeps, HostsThatShareNothingGetWhatACellNeedsAndItsRunIsFetched) {
  const SweepConfig c =
      config("setups = ['2x1']\n[hosts]\nlist = 'a,b'\nssh = ['--ssh-user', 'ana']\npush = true\n",
             {"sweep.folder=sweeps/s"});
  auto all = expand_sweep(c);
  const std::string cell = "sweeps/s/cells/2x1_seed-1";
  const Names reached = {"--hosts", cell + "/hosts.txt", "--ssh-user", "ana"};
  const Names words = cell_command(c, all[0], false);
  EXPECT_EQ(Names(words.begin() + 2, words.begin() + 6), reached);
  EXPECT_EQ(words[6], "--push");
  EXPECT_EQ(words.back(), "run.seed=1");
  all[0].record.attempts = 2;
  EXPECT_EQ(cell_command(c, all[0], false).back(), "--resume=auto");
  const Names fetching = fetch_command(c, all[0]);
  EXPECT_EQ(fetching[1], "fetch");
  EXPECT_EQ(Names(fetching.begin() + 2, fetching.begin() + 6), reached);
  EXPECT_EQ(fetching.back(), cell + "/run");
  EXPECT_ERROR(config("setups = ['2x1']\n[hosts]\nlist = 'a,b'\npush = true\n"), ConfigError,
               "expected a path below the present folder");
  EXPECT_ERROR(config("[hosts]\npush = true\n"), ConfigError, "but no hosts are given");
}

TEST_F(Sweeps, MistakesAreSaidWithTheirPlace) {
  EXPECT_ERROR(cells("[grid]\n'optimizer.lrr' = [1]\n"), ConfigError,
               "s.toml:6:19: optimizer.lrr: unknown key; did you mean optimizer.lr?");
  EXPECT_ERROR(cells("[grid]\n'optimizer.lr' = [1, -1]\n"), ConfigError,
               "s.toml:6:18: optimizer.lr: expected a number > 0, got -1");
  EXPECT_ERROR(cells("[grid]\n'optimizer.lr' = 1\n"), ConfigError,
               "expected a list of values, got 1");
  EXPECT_ERROR(cells("[grid]\n'optimizer.lr' = []\n"), ConfigError, "got an empty one");
  EXPECT_ERROR(cells("[gird]\nx = [1]\n"), ConfigError, "s.toml:6:5: gird.x: unknown key");
  EXPECT_ERROR(cells("setups = ['2y2']\n"), ConfigError, "\"2y2\": expected hosts x ranks on each");
  EXPECT_ERROR(cells("setups = ['0x2']\n"), ConfigError, "\"0x2\": expected hosts x ranks on each");
  EXPECT_ERROR(cells("setups = ['1x1', '1x1']\n"), ConfigError, "\"1x1\" stands there twice");
  EXPECT_ERROR(cells("seeds = [1]\nrepeats = 2\n"), ConfigError, "and sweep.repeats: one of them");
  EXPECT_ERROR(cells("[set]\n'run.seed' = 1\n"), ConfigError,
               "sweep.seeds or sweep.repeats say it");
  EXPECT_ERROR(cells("[set]\n'optimizer.lr' = 1\n[grid]\n'optimizer.lr' = [1]\n"), ConfigError,
               "is in [set] too");
  EXPECT_ERROR(cells("per_rank = ['batch.sentence']\n"), ConfigError,
               "\"batch.sentence\" has no value in [set], [grid]");
  EXPECT_ERROR(cells("per_rank = ['task.name']\n"), ConfigError, "expected a number");
  EXPECT_ERROR(cells("at_once = 2\n"), ConfigError, "needs sweep.threads");
  EXPECT_ERROR(cells("cores = 100000\n"), ConfigError, "100000: there are");
  EXPECT_ERROR(cells("setups = ['3x1']\n[hosts]\nlist = 'a,b'\n"), ConfigError,
               "\"3x1\" needs 3 hosts, -H names 2");
  EXPECT_ERROR(cells("[hosts]\nlist = 'a,b'\n[network]\ndelay_ms = [1]\n"), ConfigError,
               "the network between real hosts is as it is");
  EXPECT_ERROR(config("", {"sweep.base=nothing"}), ConfigError, "no file nothing");
  EXPECT_ERROR(config("", {"sweep.oversubscribe=false", "sweep.setups=['1x200']"}), ConfigError,
               "needs 200 cores (200 ranks of 1 thread)");
}

TEST_F(Sweeps, ShippedConfigurationsAreFoundByName) {
  // The program of the tests is build/tests/NAME, configs/ lies beside build/.
  const SweepConfig c = config("", {"sweep.base=images/resnet18-tiny"});
  EXPECT_EQ(c.base.filename(), "resnet18-tiny.toml");
}

TEST_F(Sweeps, TheShippedExperimentsExpand) {
  const fs::path configs = fs::path(LOCKSTEP_SOURCE) / "configs/experiments";
  int read = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    SCOPED_TRACE(entry.path().string());
    const SweepConfig c = read_sweep_config(entry.path(), {"sweep.oversubscribe=true"});
    EXPECT_GE(expand_sweep(c).size(), 6u);
    ++read;
  }
  EXPECT_EQ(read, 6);
}

TEST_F(Sweeps, WhatWasRunWithOtherValuesIsNotMixed) {
  const std::string text = "[grid]\n'optimizer.lr' = [1, 2]\n";
  auto all = cells(text);
  const SweepFolder sweep{folder_.path() / "out"};
  all[0].record.state = "done";
  all[0].record.attempts = 1;
  write_cell(sweep, all[0].record);
  write_file(sweep.config(all[0].record.name), all[0].config);
  auto again = cells(text);
  find_former(sweep, again);
  EXPECT_EQ(again[0].record.state, "done");
  EXPECT_EQ(again[1].record.state, "waiting");
  auto failed = cells(text);
  failed[1].record.state = "failed";
  failed[1].record.attempts = 1;
  write_cell(sweep, failed[1].record);
  write_file(sweep.config(failed[1].record.name), "[optimizer]\nlr = 7\n");
  find_former(sweep, again = cells(text));
  EXPECT_EQ(again[1].record.attempts, 0) << "it left nothing that could be mixed";
  auto changed = cells("[set]\n'training.clip_norm' = 3\n" + text);
  EXPECT_ERROR(
      find_former(sweep, changed), ConfigError,
      "lr-1_1x1_seed-1: was run with other values: training.clip_norm was 1.0, is now 3.0");
}

}  // namespace
}  // namespace lockstep

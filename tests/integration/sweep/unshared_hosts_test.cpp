// A sweep whose cells run on hosts that share nothing with the machine that it was started on.
#include <gtest/gtest.h>

#include "report/run/sweep_cell.h"
#include "support/apart_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

using SweepOnHosts = ApartRuns;

TEST_F(SweepOnHosts, PushesWhatACellNeedsAndFetchesItsRun) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.program = ApartProgram::kSetUp});
  write_file(desk() / "rates.toml",
             "[sweep]\nbase = 'tiny.toml'\nsetups = ['2x1']\nthreads = 1\n"
             "[hosts]\nlist = 'a,b'\npush = true\n[set]\n'training.steps' = 4\n"
             "[grid]\n'optimizer.lr' = [1e-3, -0.0]\n");
  auto sweep = [&] {
    return hosts.run("control", lockstep_here("sweep rates.toml"), seconds(180));
  };
  EXPECT_EQ(sweep().first, 2) << "a rate of 0 is no rate";

  std::string text = read_file(desk() / "rates.toml");
  text.replace(text.find("-0.0"), 4, "1e-4");
  write_file(desk() / "rates.toml", text);
  const auto [code, said] = sweep();
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "2 done");
  const SweepFolder folder{desk() / "sweeps/rates"};
  for (const char* name : {"lr-0.001_2x1_seed-1", "lr-0.0001_2x1_seed-1"}) {
    EXPECT_EQ(read_cell(folder, name).value().state, "done") << name;
    EXPECT_EQ(metrics_of(folder.run(name), "step").size(), 4u) << name;
    EXPECT_TRUE(fs::exists(folder.run(name) / "logs/rank01.log")) << "of host b";
  }
  const auto [compared, table] =
      hosts.run("control", lockstep_here("compare sweeps/rates"), seconds(60));
  EXPECT_EQ(compared, 0) << table;
  expect_says(table, "0.0001");
}

}  // namespace
}  // namespace lockstep

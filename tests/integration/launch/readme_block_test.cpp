// README's block "On several machines", as it stands there, on four hosts that share nothing: what
// a cloud prints of them, a training that loses a rank and a host, and what is left of it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "support/apart_runs.h"
#include "support/expect_says.h"
#include "support/instances.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

// The commands of the first block of a section, without comments, continued lines joined.
std::vector<std::string> block_of_readme(const std::string& section) {
  const std::string text = read_file(fs::path(LOCKSTEP_SOURCE) / "README.md");
  const std::size_t head = text.find("\n## " + section + "\n");
  const std::size_t begin = text.find("\n```\n", head) + 5;
  const std::size_t end = text.find("\n```\n", begin);
  if (head == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> out;
  for (const std::string& line : split(text.substr(begin, end - begin), '\n')) {
    const std::string command(trim(line.substr(0, line.find(" #"))));
    if (!command.empty() && command.front() != '#') out.push_back(command);
  }
  return out;
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

class ReadmeBlock : public ApartRuns {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    ApartRuns::SetUp();
    hosts_ = std::make_unique<HostsApart>(
        ApartOptions{.names = {"n1", "n2", "n3", "n4"}, .program = ApartProgram::kSetUp});
    fs::rename(desk() / "tiny.toml", desk() / "nmt.toml");
    write_instances(*hosts_, desk() / "instances.json");
  }

  std::string shell(const std::string& command) const {
    return fmt::format(
        "export PATH='{}':$PATH HOME='{}' OMP_NUM_THREADS=1 HOSTS='--instances instances.json'; "
        "cd '{}' && {}",
        fs::path(LOCKSTEP_PROGRAM).parent_path().string(), home_.path().string(), desk().string(),
        command);
  }
  // Runs a command of the laptop's; returns its exit code and what it said.
  std::pair<int, std::string> laptop(const std::string& command) {
    return hosts_->run("control", shell(command), seconds(180));
  }

  TemporaryFolder home_;  // of the laptop's owner
  std::unique_ptr<HostsApart> hosts_;
};

TEST_F(ReadmeBlock, WorksAsItStandsThroughAKilledRankAndALostHost) {
  std::vector<std::string> commands = block_of_readme("On several machines");
  ASSERT_GE(commands.size(), 7u);
  std::string id;
  bool launched = false, reported = false;
  for (std::string command : commands) {
    // Clouds and their keys are not here, and a lab in a lab has a test of its own.
    if (command.starts_with("aws ") || command.starts_with("export HOSTS=")) continue;
    if (command.find(" netlab ") != std::string::npos) continue;
    SCOPED_TRACE(command);
    const bool launches = command.starts_with("lockstep launch ");
    if (launches) {
      replace(command, "--min-hosts 3",
              "--min-hosts 3 --host-timeout 10 --host-poll 600 --silence 3");
      command += " training.steps=10000000 checkpoint.every=20";
    }
    replace(command, " JOB", " " + id);
    const auto [code, said] = laptop(command);
    ASSERT_EQ(code, 0) << said;
    if (launches) {
      launched = true;
      const std::size_t at = said.find("lockstep attach ");
      ASSERT_NE(at, std::string::npos) << said;
      id = said.substr(at + 16, said.find(' ', at + 16) - at - 16);
    }
    reported |= command.starts_with("lockstep report ");
  }
  ASSERT_TRUE(launched && reported);

  auto attached = hosts_->start(
      "control", {"/bin/sh", "-c", shell("exec lockstep attach " + id + " --lines 0")});
  attached->expect("saved ");
  ASSERT_EQ(hosts_->run("n2", "pkill -KILL -f '[l]ockstep train'").first, 0);
  attached->expect("attempt 1: 4 ranks on 4 of 4 hosts");
  attached->expect("resumed from");
  hosts_->power_off("n4");
  const std::string shrunk = "attempt 2: 3 ranks on 3 of 4 hosts";
  attached->expect(shrunk);
  attached->expect("saved ", shrunk);

  const auto [stopped, last] = laptop("lockstep stop " + id);
  EXPECT_EQ(stopped, 0) << last;
  expect_says(last, "newest checkpoint: ");
  EXPECT_EQ(attached->wait(seconds(60)), 143) << attached->output();
  const auto [evaluated, score] = laptop("lockstep launch --push -H n1 -- evaluate runs/nmt");
  EXPECT_EQ(evaluated, 0) << score;
  expect_says(score, "BLEU");
  const auto [fetched, files] = laptop("lockstep fetch " + id);
  EXPECT_EQ(fetched, 4) << files;  // n4 has no power
  expect_says(files, "n4: ");
  const auto [told, report] = laptop("lockstep report runs/nmt");
  EXPECT_EQ(told, 0) << report;
  expect_says(report, "host n4");
  expect_says(report, "rank 1 on n2");
}

}  // namespace
}  // namespace lockstep

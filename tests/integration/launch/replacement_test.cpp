// A host that is lost, and another machine under another name and address that takes its place.
#include <gtest/gtest.h>

#include "support/apart_runs.h"
#include "support/instances.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

class Replacement : public ApartRuns {};

TEST_F(Replacement, AMachineOfALaterListIsSetUpAndGoesOnInThePlaceOfALostOne) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.names = {"n1", "n2", "n3"}, .program = ApartProgram::kSetUp});
  const fs::path list = desk() / "instances.json";
  write_instances(hosts, list, {"n1", "n2"});
  const std::string words =
      "launch --push --instances-command 'cat instances.json' --host-timeout 3 --host-poll 1 "
      "--silence 3 --replacement-wait 100 -- train tiny.toml run.folder=run "
      "training.steps=10000000 checkpoint.every=20";
  auto job = hosts.start("control", {"/bin/sh", "-c", lockstep_here(words)}, {"OMP_NUM_THREADS=1"});
  const auto expect = [&](const std::string& text) {
    ASSERT_GE(job->wait_for(text, seconds(60)), 0) << text << "\n" << job->output();
  };
  expect("saved ");
  hosts.power_off("n2");
  expect("too few hosts are there: waiting up to 1 m 40 s for others");
  write_instances(hosts, list, {"n1", "n3"});
  expect("host n3 takes the place of n2");
  expect("attempt 1: 2 ranks on 2 of 2 hosts");
  expect("resumed from");
  expect("saved ");
  job->signal(SIGTERM);
  EXPECT_EQ(job->wait(seconds(60)), 143) << job->output();
  EXPECT_NE(read_file(hosts.file("n3", "lockstep/desk/run/logs/rank01.log")).find("step"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep

#include "launch/jobs/job_record.h"

#include <gtest/gtest.h>

#include "launch/jobs/find_job.h"
#include "launch/jobs/job_keeper.h"
#include "launch/jobs/job_lock.h"
#include "launch/jobs/job_setup.h"
#include "launch/jobs/job_stream.h"
#include "support/expect_error.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

JobRecord some_job() {
  JobRecord record{.id = "nmt-1c4f",
                   .command = {"train", "a b.toml", "run.folder=runs/nmt"},
                   .program = "",
                   .options = {"--min-hosts", "1"},
                   .environment = {"OMP_NUM_THREADS=1", "WANDB=off"},
                   .folder = "~/lockstep/nmt",
                   .run_folder = "~/lockstep/nmt/runs/nmt",
                   .hosts = {{.name = "a", .ssh_name = "ana@gate", .address = "10.0.0.1"},
                             {.name = "b", .ssh_name = "b", .address = "10.0.0.2", .ranks = 2}},
                   .launcher = "a"};
  record.state = JobState::kRunning;
  record.started = 1795522102.081;
  return record;
}

// A home of its own for the process.
class JobHome : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = ::getenv("HOME");
    ::setenv("HOME", home_.path().c_str(), 1);
    fs::create_directories(job_folder("nmt-1c4f"));
    write_job_record(some_job());
  }
  void TearDown() override { ::setenv("HOME", before_.c_str(), 1); }
  TemporaryFolder home_;
  std::string before_;
};

TEST(JobRecord, IsTheSameAfterItsJson) {
  const std::string text = to_text(some_job());
  EXPECT_EQ(to_text(job_record_of(text, "x")), text);
  EXPECT_EQ(job_record_of(text, "x").hosts[1].ranks, 2);
}

TEST(JobRecord, SaysWhereItIsDamaged) {
  EXPECT_ERROR(job_record_of("{\"id\": ", "jobs/x/job.json"), DataError, "jobs/x/job.json");
  std::string text = to_text(some_job());
  text.replace(text.find("\"running\""), 9, "\"gone\"");
  EXPECT_ERROR(job_record_of(text, "j"), DataError, "no state of a job: \"gone\"");
  text = to_text(some_job());
  text.replace(text.find("nmt-1c4f"), 8, "../../x.");
  EXPECT_ERROR(job_record_of(text, "j"), DataError, "is no id of a job");
}

TEST(JobRecord, AnIdIsShortAndUnlikeThoseThatAreTaken) {
  const std::string id = new_job_id("My Run_7!", {});
  EXPECT_EQ(id.substr(0, 9), "my-run-7-") << id;
  EXPECT_EQ(id.size(), 13U);
  EXPECT_TRUE(is_job_id(id));
  EXPECT_EQ(new_job_id("...", {}).substr(0, 4), "job-");
  for (const char* bad : {"", "-a", "a/b", "..", "A", "a b"}) EXPECT_FALSE(is_job_id(bad)) << bad;
}

TEST(JobStream, GoesOnWhereAConnectionBroke) {
  std::string out, errors;
  JobStreamReader reader(
      [&](bool of_errors, std::string_view bytes) { (of_errors ? errors : out) += bytes; });
  reader.read("Welcome!\nlockstep job ");
  reader.read("output\no 105 5\nstep\n");
  EXPECT_EQ(out, "step\n");
  EXPECT_EQ(reader.out_offset(), 105);
  reader.read("e 3 3\nno\no 110 5\nst");  // and the connection ends
  reader.begin_again();
  reader.read("lockstep job output\no 110 5\nstop\nx 143\n");
  EXPECT_EQ(out, "step\nstop\n");
  EXPECT_EQ(errors, "no\n");
  EXPECT_EQ(reader.exit_code(), 143);
  EXPECT_TRUE(reader.whole());
  reader.begin_again();
  EXPECT_ERROR(reader.read("lockstep job output\nhello\n"), MachineError, "hello");
}

TEST_F(JobHome, ALockIsHeldByOneAndEndsWithIt) {
  const fs::path file = job_folder("nmt-1c4f") / "launcher";
  EXPECT_FALSE(job_lock_holder(file));
  {
    std::optional<Descriptor> lock = take_job_lock(file, 2);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(take_job_lock(file, 3));
    EXPECT_EQ(job_lock_holder(file)->term, 2);
    EXPECT_EQ(job_lock_holder(file)->process, ::getpid());
    EXPECT_FALSE(end_older_holder(file, 2)) << "it is as new";
  }
  EXPECT_FALSE(job_lock_holder(file));
  EXPECT_TRUE(take_job_lock(file, 3));
}

TEST_F(JobHome, AnAgentStartsTheJobsCommandAlone) {
  const JobMember member({.id = "nmt-1c4f", .me = "b", .launcher = "a", .term = 1});
  const std::vector<std::string> own = {"", "train", "a b.toml", "run.folder=runs/nmt"};
  member.admit(own, {"WANDB=off", "NCCL_DEBUG=INFO"});
  std::vector<std::string> resumed = own;
  resumed.push_back("--resume");
  member.admit(resumed, {});
  EXPECT_ERROR(member.admit({"/bin/sh", "-c", "id"}, {}), ConfigError,
               "this is not the command of job nmt-1c4f: /bin/sh -c id");
  EXPECT_ERROR(member.admit(own, {"LD_PRELOAD=/tmp/x.so"}), ConfigError,
               "job nmt-1c4f has no variable LD_PRELOAD");
  EXPECT_ERROR(member.admit(own, {"WANDB=on"}), ConfigError, "has no variable WANDB");
}

TEST_F(JobHome, AnAgentObeysTheNewestLauncherAlone) {
  { const JobMember member({.id = "nmt-1c4f", .me = "b", .launcher = "b", .term = 3}); }
  EXPECT_EQ(read_job_record("nmt-1c4f")->term, 3);
  EXPECT_EQ(read_job_record("nmt-1c4f")->launcher, "b");
  EXPECT_ERROR(JobMember({.id = "nmt-1c4f", .me = "b", .launcher = "a", .term = 2}), ConfigError,
               "job nmt-1c4f goes on from b since (launcher 3, this one is 2)");
  EXPECT_ERROR(JobMember({.id = "nmt-1c4f", .me = "x/../b", .launcher = "b", .term = 4}),
               ConfigError, "job nmt-1c4f has no host \"x/../b\"");
  EXPECT_ERROR(JobMember({.id = "nmt-0000", .me = "b", .launcher = "a", .term = 2}), ConfigError,
               "no job \"nmt-0000\" on this host");
}

TEST_F(JobHome, WhatThisMachineStartedIsKnownByItsBeginning) {
  write_known_job({.id = "nmt-1c4f", .hosts = {}, .remote = {.port = 2222, .key = "/k"}});
  write_known_job({.id = "nmt-1d00", .hosts = {}, .remote = {}});
  ASSERT_EQ(known_jobs().size(), 2U);
  EXPECT_EQ(known_jobs()[0].remote.port, 2222);
  EXPECT_ERROR(find_job("nmt-1", {}, {}), ConfigError, "several begin so: nmt-1c4f, nmt-1d00");
  EXPECT_ERROR(find_job("nmt-1c4e", {}, {}), ConfigError, "did you mean nmt-1c4f?");
}

}  // namespace
}  // namespace lockstep

// A host that loses power, or is full, in the n-th change of a file, while files or the program are
// copied to it: nothing half-written is taken for whole, and the same command again mends it. By
// default a sample of all n; LOCKSTEP_EVERY_CRASH_POINT=1 tries every one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "support/digests_below.h"
#include "support/program.h"
#include "support/ssh_hosts.h"

namespace lockstep {
namespace {

class CrashPointsOfHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = SshHosts::missing(); !missing.empty()) GTEST_SKIP() << missing;
    plan(root_, 0, "none");
    host_.emplace(1,
                  fmt::format("LD_PRELOAD={} LOCKSTEP_FAILING_FILES=@{} LOCKSTEP_COUNTED_FILES={}",
                              LOCKSTEP_FAILING_FILES, plan_.string(), count_.string()));
  }

  // `what` of failing_files.h becomes of the n-th change below `root` from now on.
  void plan(const fs::path& root, long nth, const std::string& what) const {
    fs::remove(count_);
    write_file(plan_, fmt::format("{} {} {}\n", root.string(), nth, what));
  }
  long changes() const {
    long out = 0;
    std::memcpy(&out, read_file(count_).data(), sizeof out);
    return out;
  }
  ProgramResult setup(const std::string& words) const {
    return run_lockstep(fmt::format("cluster setup -F {} -H n0 {}", host_->config(), words));
  }
  static std::vector<long> points(long all, long sample) {
    const long every = std::getenv("LOCKSTEP_EVERY_CRASH_POINT") != nullptr ? 1 : all / sample + 1;
    std::vector<long> out;
    for (long n = 1; n <= all; n += every) out.push_back(n);
    return out;
  }

  TemporaryFolder folder_;
  fs::path plan_ = folder_.path() / "plan", count_ = folder_.path() / "count";
  fs::path root_ = folder_.path() / "root";  // below which changes on the host fail
  std::optional<SshHosts> host_;
};

TEST_F(CrashPointsOfHosts, FilesThatAreCopiedAreWholeOrNotThere) {
  const fs::path corpus = folder_.path() / "corpus", there = root_ / "there";
  fs::create_directories(corpus / "part");
  for (const char* name : {"one", "two", "part/three"}) {
    write_file(corpus / name, std::string(100'000, name[0]));
  }
  const auto whole = digests_below(corpus);
  const std::string words =
      fmt::format("--no-program --copy {}:{}", corpus.string(), there.string());
  ASSERT_EQ(setup(words).exit_code, 0);
  EXPECT_EQ(digests_below(there), whole);
  const long all = changes();
  ASSERT_GT(all, 10);
  for (const char* fault : {"power", "ENOSPC"}) {
    for (long nth : points(all, 6)) {
      fs::remove_all(root_);
      plan(root_, nth, fault);
      const ProgramResult failed = setup(words);
      const std::string when = fmt::format("{} in change {} of {}: ", fault, nth, all);
      EXPECT_TRUE(failed.exit_code == 4 || failed.exit_code == 0) << when << failed.errors;
      for (const auto& [name, digest] : digests_below(there)) {
        if (failed.exit_code == 0 || std::string(fault) != "power") {
          EXPECT_EQ(digest, whole.at(name)) << when << name;
        }
      }
      plan(root_, 0, "none");
      const ProgramResult again = setup(words);
      ASSERT_EQ(again.exit_code, 0) << when << again.errors;
      EXPECT_EQ(digests_below(there), whole) << when;
      if (HasFailure()) return;
    }
  }
}

// The end of it, where what arrived gets its names, and one place before.
TEST_F(CrashPointsOfHosts, AProgramThatIsCopiedRunsOrIsCopiedAgain) {
  const fs::path installed = host_->home(0) / ".lockstep";
  plan(installed, 0, "none");
  ASSERT_EQ(setup("").exit_code, 0);
  const auto whole = digests_below(installed / "current/");
  const long all = changes();
  std::vector<long> tried{all / 2, all - 100, all - 40, all - 1};
  if (std::getenv("LOCKSTEP_EVERY_CRASH_POINT") != nullptr) {
    for (long back = 0; back < 240; back += 4) tried.push_back(all - back);
  }
  for (long nth : tried) {
    fs::remove_all(installed);
    plan(installed, nth, "power");
    const std::string when = fmt::format("power in change {} of {}: ", nth, all);
    const ProgramResult failed = setup("");
    EXPECT_TRUE(failed.exit_code == 4 || failed.exit_code == 0) << when << failed.errors;
    plan(installed, 0, "none");
    const ProgramResult again = setup("");
    ASSERT_EQ(again.exit_code, 0) << when << again.errors;
    EXPECT_EQ(digests_below(installed / "current/"), whole) << when;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep

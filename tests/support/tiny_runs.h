// Runs the built program on a tiny corpus that the tests of a suite share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/program.h"
#include "support/tiny_corpus.h"

namespace lockstep {

class TinyRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    failure_ = make_tiny_corpus(folder_->path());
    write_tiny_config(folder_->path());
  }
  // Checked here, since a test whose SetUpTestSuite() failed would count as skipped.
  void SetUp() override { ASSERT_EQ(failure_, ""); }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  fs::path run(const std::string& name) const { return folder_->path() / name; }

  // Trains into run(name) with `ranks` ranks of one thread each.
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "",
                      const std::string& before = "OMP_NUM_THREADS=1") const {
    std::string train = fmt::format("train {}/tiny.toml run.folder={} {}", folder_->path().string(),
                                    run(name).string(), words);
    if (ranks > 1) train = fmt::format("launch -n {} -- {}", ranks, train);
    return run_lockstep(train, before);
  }

  inline static TemporaryFolder* folder_ = nullptr;
  inline static std::string failure_;
};

}  // namespace lockstep

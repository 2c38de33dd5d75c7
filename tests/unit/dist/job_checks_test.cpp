#include "dist/collectives/job_checks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(JobChecks, ShowWhatALoneRankMayHaveMissed) {
  auto sign = [](const std::string& set) {
    return sign_of_lone_rank([&](const char* name) -> std::optional<std::string> {
      return name == set ? std::optional<std::string>("6") : std::nullopt;
    });
  };
  EXPECT_EQ(sign("PMI_FD"), "PMI_FD=6");
  EXPECT_EQ(sign("HOME"), "");
}

}  // namespace
}  // namespace lockstep

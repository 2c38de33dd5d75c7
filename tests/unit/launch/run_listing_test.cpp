#include "launch/fetch/run_listing.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(RunListing, HasFilesWithTheirFacts) {
  const RunListing listing =
      read_run_listing("zone +0130\nfile 12 77 1700000000 ./logs/rank00.log\nfile 0 78 5 ./a b\n");
  EXPECT_TRUE(listing.exists);
  EXPECT_EQ(listing.zone_seconds, 5400);
  ASSERT_TRUE(listing.has("logs/rank00.log"));
  EXPECT_EQ(listing.files.at("logs/rank00.log"), (FileFacts{12, 77, 1700000000}));
  EXPECT_TRUE(listing.has("a b"));
}

TEST(RunListing, OfNoFolderSaysSo) { EXPECT_FALSE(read_run_listing("none\n").exists); }

TEST(RunListing, LeavesOutNamesThatLeadOutOfTheFolder) {
  const RunListing listing = read_run_listing(
      "zone +0000\nfile 1 1 1 ./../../.ssh/authorized_keys\nfile 1 1 1 /etc/passwd\n"
      "file 1 1 1 .//etc/passwd\nfile 1 1 1 ./a/../b\nfile 1 1 1 ./.fetch/state.json\n"
      "file 1 1 1 ./a\tb\nfile -5 1 1 ./negative\nfile 1 1 ./short\n");
  EXPECT_TRUE(listing.files.empty());
}

}  // namespace
}  // namespace lockstep

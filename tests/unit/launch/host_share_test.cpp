// Prepared data in parts.
#include "launch/hosts/host_share.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

std::vector<std::string> paths(const std::vector<Piece>& pieces) {
  std::vector<std::string> out;
  for (const Piece& piece : pieces) out.push_back(piece.path);
  return out;
}

using Paths = std::vector<std::string>;

TEST(ShareOut, DealsShardsAndLargeFilesAndGivesTheRestToAll) {
  TemporaryFolder folder;
  auto write = [&](const std::string& name, std::size_t bytes) {
    write_file(folder.path() / name, std::string(bytes, 'x'));
  };
  for (const char* name : {"train-00000.shard", "train-00001.shard", "train-00002.shard"}) {
    write(name, 10);
  }
  write("val-00000.shard", 10);
  write("train.index", 2 << 20);
  write("train.tokens", 2 << 20);
  write("subword.model", 100);
  write("notes.txt", 3 << 20);
  std::string files;
  for (const char* name : {"train-00000.shard", "train-00001.shard", "train-00002.shard",
                           "val-00000.shard", "train.index", "train.tokens", "subword.model"}) {
    files += (files.empty() ? "" : ", ") + fmt::format(R"({{"name": "{}"}})", name);
  }
  write_file(folder.path() / "manifest.json", "{\"files\": [" + files + "]}");
  const SharedOut out = share_out(folder.path().string(), 2);
  EXPECT_EQ(paths(out.common), (Paths{"manifest.json", "subword.model", "train.index"}));
  EXPECT_EQ(paths(out.part[0]),
            (Paths{"train-00000.shard", "train-00002.shard", "val-00000.shard"}));
  EXPECT_EQ(paths(out.part[1]), (Paths{"train-00001.shard", "train.tokens"}));
}

TEST(ShareOut, RefusesAFolderOfImagesAndADamagedManifest) {
  TemporaryFolder folder;
  EXPECT_ERROR(share_out(folder.path().string(), 2), ConfigError, "lockstep prepare images");
  write_file(folder.path() / "manifest.json", "{\"files\": 3");
  EXPECT_ERROR(share_out(folder.path().string(), 2), DataError, "manifest.json: damaged");
}

}  // namespace
}  // namespace lockstep

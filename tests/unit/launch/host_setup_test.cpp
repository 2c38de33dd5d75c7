#include "launch/hosts/host_setup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(HostSetup, TakesAMountApart) {
  Mount nfs = parse_mount("10.0.0.9:/exports/data:/data");
  EXPECT_EQ(nfs.source, "10.0.0.9:/exports/data");
  EXPECT_EQ(nfs.point, "/data");
  EXPECT_EQ(nfs.type, "nfs");
  EXPECT_EQ(nfs.options, "hard,_netdev,nofail");
  Mount efs = parse_mount("fs-1.efs.example.com:/:/mnt/efs/:nfs4:nfsvers=4.1,hard");
  EXPECT_EQ(efs.source, "fs-1.efs.example.com:/");
  EXPECT_EQ(efs.point, "/mnt/efs");
  EXPECT_EQ(efs.type, "nfs4");
  EXPECT_EQ(efs.options, "nfsvers=4.1,hard");
  EXPECT_EQ(parse_mount("/dev/sdb1:/data:ext4").source, "/dev/sdb1");
  for (const char* bad : {"", "server", "server:/x", ":/x:/y", "server:/x:y", "server:/x:/y:",
                          "server:/x:/y:nfs:", "server:/x:/", "server:/x:/y z", "a:/x:/y:t:o:p"}) {
    EXPECT_ERROR(parse_mount(bad), ConfigError, "expected SERVER:/EXPORT:/MOUNTPOINT");
  }
}

TEST(HostSetup, TakesACopyApart) {
  TemporaryFolder folder;
  std::string path = folder.path().string();
  EXPECT_EQ(parse_copy(path + ":/there/").destination, "/there");
  EXPECT_EQ(parse_copy(path + ":~/there").destination, "~/there");
  EXPECT_EQ(parse_copy(path + "/").destination, path);
  EXPECT_ERROR(parse_copy(path + "/no"), ConfigError, "no such file or folder");
}

TEST(HostSetup, FindsTheFilesBelowAFolder) {
  TemporaryFolder folder;
  fs::create_directories(folder.path() / "a/b");
  write_file(folder.path() / "z", "1");
  write_file(folder.path() / "a/b/c d", "22");
  fs::create_symlink(folder.path() / "z", folder.path() / "link");
  fs::create_directory_symlink(folder.path(), folder.path() / "a/b/above");
  KnownHashes hashes(folder.path().string() + "/z-hashes");
  std::vector<Piece> pieces = files_below(folder.path().string(), hashes);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].path, "a/b/c d");
  EXPECT_EQ(pieces[0].bytes, 2);
  EXPECT_EQ(pieces[1].path, "link");
  EXPECT_EQ(pieces[1].sha256, pieces[2].sha256);
  write_file(folder.path() / "bad\nname", "");
  EXPECT_ERROR(files_below(folder.path().string(), hashes), ConfigError, "line breaks");
}

TEST(HostSetup, TakesTheProgramWithItsLibraries) {
  ProgramFiles program = program_files(false);
  auto has = [&](const std::string& path) {
    return std::any_of(program.pieces.begin(), program.pieces.end(),
                       [&](const Piece& piece) { return piece.path == path; });
  };
  EXPECT_TRUE(has("bin/lockstep"));
  EXPECT_TRUE(has("lib/libstdc++.so.6"));
  EXPECT_TRUE(has("configs/translation/quickstart.toml"));
  EXPECT_FALSE(has("lib/libc.so.6"));
  EXPECT_EQ(program.hash, program_files(false).hash);
  EXPECT_TRUE(program.packages.empty());
}

}  // namespace
}  // namespace lockstep

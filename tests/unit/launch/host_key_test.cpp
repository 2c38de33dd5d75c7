#include "launch/hosts/host_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/program.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

constexpr const char* kOwn = "ssh-ed25519 AAAA me@laptop";  // without a line break
constexpr const char* kFolder = ".lockstep/links/one";

// The home of a host's user, which this process takes for its own.
class HostKey : public testing::Test {
 protected:
  void SetUp() override {
    const char* home = std::getenv("HOME");
    before_ = home == nullptr ? "" : home;
    ::setenv("HOME", home_.path().c_str(), 1);
    fs::create_directory(home_.path() / ".ssh");
    write_file(keys(), kOwn);
    ::chmod(keys().c_str(), 0640);
  }
  void TearDown() override { ::setenv("HOME", before_.c_str(), 1); }

  fs::path keys() const { return home_.path() / ".ssh/authorized_keys"; }
  fs::path home() const { return home_.path(); }

  // Returns what went wrong; empty: nothing.
  static std::string install(const std::string& id = "one") {
    static const Host here{.name = "localhost", .ssh_name = "localhost"};
    std::vector<HostPeer> peers{{.host = &here, .name = "a", .user = "me", .address = "127.0.0.1"}};
    install_host_key(peers, {.id = id, .folder = ".lockstep/links/" + id, .door = "echo open\n"},
                     {});
    return peers[0].error;
  }
  static ProgramEnd shell(const std::string& text) { return run_to_end({"/bin/sh", "-c", text}); }
  std::string listed() const {  // what lies in ~/.ssh
    std::string out;
    for (const auto& entry : fs::directory_iterator(home_.path() / ".ssh")) {
      out += entry.path().filename().string() + " ";
    }
    return out;
  }

 private:
  TemporaryFolder home_;
  std::string before_;
};

TEST_F(HostKey, IsALineBesideTheUsersThatExpiresAndGoes) {
  ASSERT_EQ(install(), "");
  const std::string both = read_file(keys());
  EXPECT_EQ(both.find(std::string(kOwn) + "\nrestrict,expiry-time=\""), 0u) << both;
  expect_says(both, "command=\"sh ~/.lockstep/links/one/door\" ssh-ed25519 ");
  EXPECT_TRUE(both.ends_with(" lockstep-one\n")) << both;
  EXPECT_EQ(shell("sh ~/.lockstep/links/one/door >&2").said, "open\n");

  EXPECT_EQ(shell(renew_host_key_text("one", 40)).status, 0);
  const std::string renewed = read_file(keys());
  EXPECT_NE(renewed, both);
  EXPECT_EQ(renewed.size(), both.size());

  ASSERT_EQ(install("two"), "");
  shell(remove_host_key_text("one", kFolder));
  EXPECT_EQ(read_file(keys()).find("lockstep-one"), std::string::npos);
  EXPECT_FALSE(fs::exists(home() / kFolder / "key"));
  fs::remove_all(home() / ".lockstep/links/two");  // left behind without its folder
  ASSERT_EQ(install("three"), "");
  shell(remove_host_key_text("three", ".lockstep/links/three"));
  EXPECT_EQ(read_file(keys()), std::string(kOwn) + "\n");
  EXPECT_EQ(listed(), "authorized_keys ");
  EXPECT_EQ(fs::status(keys()).permissions(), fs::perms(0640));
}

TEST_F(HostKey, ALoginAtAnyMomentFindsTheUsersKeys) {
  // A file that is open stays as it was: another takes its name.
  std::ifstream before_install(keys());
  ASSERT_EQ(install(), "");
  std::ifstream before_renewal(keys());
  const std::string installed = read_file(keys());
  shell(renew_host_key_text("one", 40));
  std::ifstream before_removal(keys());
  const std::string renewed = read_file(keys());
  shell(remove_host_key_text("one", kFolder));
  const auto rest = [](std::istream& in) { return std::string(std::istreambuf_iterator(in), {}); };
  EXPECT_EQ(rest(before_install), kOwn);
  EXPECT_EQ(rest(before_renewal), installed);
  EXPECT_EQ(rest(before_removal), renewed);
}

TEST_F(HostKey, ADiskThatIsFullLeavesTheKeysAsTheyWere) {
  ASSERT_EQ(install(), "");
  const std::string installed = read_file(keys());
  for (const std::string& text :
       {renew_host_key_text("one", 40), remove_host_key_text("one", kFolder)}) {
    shell("ulimit -f 0\n" + text);
    EXPECT_EQ(read_file(keys()), installed);
    EXPECT_EQ(listed(), "authorized_keys ");
  }
}

TEST_F(HostKey, FollowsALinkAndTakesAFileThatIsAMount) {
  fs::rename(keys(), home() / "elsewhere");
  fs::create_symlink("../elsewhere", keys());
  ASSERT_EQ(install(), "");
  EXPECT_TRUE(fs::is_symlink(keys()));
  expect_says(read_file(home() / "elsewhere"), "lockstep-one");

  if (::geteuid() != 0 || shell("unshare -m true").status != 0) {
    GTEST_SKIP() << "no mount namespaces here";
  }
  fs::remove(keys());
  write_file(keys(), "");
  const ProgramEnd end = run_to_end(
      {"unshare", "-m", "/bin/sh", "-c",
       "mount --bind ~/elsewhere ~/.ssh/authorized_keys\n" + remove_host_key_text("one", kFolder)});
  EXPECT_EQ(end.status, 0) << end.said;
  EXPECT_EQ(read_file(home() / "elsewhere"), std::string(kOwn) + "\n");
  EXPECT_EQ(listed(), "authorized_keys ");
}

}  // namespace
}  // namespace lockstep

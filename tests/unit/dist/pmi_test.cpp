#include "dist/rank/pmi.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

// A process manager with one process: answers each line that it expects with the next one.
class Manager {
 public:
  explicit Manager(std::vector<std::pair<std::string, std::string>> talk) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    descriptor_ = ends[0];
    thread_ = std::thread([theirs = ends[1], talk = std::move(talk)] {
      for (const auto& [request, answer] : talk) {
        std::string line;
        for (char c = 0; ::read(theirs, &c, 1) == 1 && c != '\n';) line += c;
        EXPECT_EQ(line, request);
        std::string text = answer + "\n";
        if (answer.empty() || ::write(theirs, text.data(), text.size()) < 0) break;
      }
      ::close(theirs);
    });
  }
  ~Manager() {
    ::close(descriptor_);
    thread_.join();
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::thread thread_;
};

using Talk = std::vector<std::pair<std::string, std::string>>;
const Talk kBegin = {{"cmd=init pmi_version=1 pmi_subversion=1",
                      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
                     {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7"}};

TEST(Pmi, BringsRank0sAddressToAnotherRank) {
  Talk talk = kBegin;
  talk.push_back({"cmd=barrier_in", "cmd=barrier_out"});
  talk.push_back({"cmd=get kvsname=kvs_7 key=lockstep-address",
                  "cmd=get_result rc=0 msg=success value=fd00::2"});
  talk.push_back({"cmd=get kvsname=kvs_7 key=lockstep-port", "cmd=get_result rc=0 value=4242"});
  talk.push_back({"cmd=get kvsname=kvs_7 key=lockstep-secret",
                  "cmd=get_result rc=0 value=00112233445566778899aabbccddeeff"});
  talk.push_back({"cmd=finalize", "cmd=finalize_ack"});
  Manager manager(talk);
  LaunchEnvironment environment;
  environment.rank = 1;
  environment.size = 2;
  environment.launcher = "MPICH";
  learn_master(environment, [&](const char* name) -> std::optional<std::string> {
    if (name == std::string("PMI_FD")) return std::to_string(manager.descriptor());
    return std::nullopt;
  });
  EXPECT_EQ(environment.master_address, "fd00::2");
  EXPECT_EQ(environment.master_port, 4242);
  EXPECT_EQ(environment.run_id, "kvs_7");
}

TEST(Pmi, SaysWhatTheManagerAnswered) {
  Manager manager({{kBegin[0].first, "cmd=response_to_init rc=-1"}});
  try {
    PmiTalk talk(manager.descriptor());
    FAIL();
  } catch (const MachineError& error) {
    EXPECT_NE(error.describe().find("it answered \"cmd=response_to_init rc=-1\""),
              std::string::npos)
        << error.describe();
  }
}

TEST(Pmi, NoticesAManagerThatHungUp) {
  Manager manager({{kBegin[0].first, ""}});
  EXPECT_THROW(PmiTalk talk(manager.descriptor()), MachineError);
}

}  // namespace
}  // namespace lockstep

// What a host answers to doctor and plan, where another program than this version's answers.
#include "launch/probe/probed_hosts.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

class ProbedHostsTest : public ::testing::Test {
 protected:
  // A host whose `lockstep probe` prints these lines, the first after each question.
  ProbedHosts answering(const std::string& line) {
    const fs::path program = folder_.path() / "lockstep";
    write_file(program, "#!/bin/sh\nwhile read -r question; do echo '" + line + "'; done\n");
    fs::permissions(program, fs::perms::owner_all);
    return ProbedHosts({}, {.program = program.string()});
  }
  TemporaryFolder folder_;
};

TEST_F(ProbedHostsTest, AnAnswerOfAnotherShapeIsAFailureOfThatHost) {
  ProbedHosts hosts = answering("{\"probe\": \"link\", \"port\": \"none\"}");
  hosts.each([](ProbedHost& host, std::size_t) {
    const int port = host.session->ask("link", Json::object(), milliseconds(5000)).at("port");
    ADD_FAILURE() << port;
  });
  ASSERT_TRUE(hosts.all()[0].failure);
  EXPECT_NE(hosts.all()[0].failure->describe().find("an answer that this version does not"),
            std::string::npos)
      << hosts.all()[0].failure->describe();
}

TEST_F(ProbedHostsTest, AnErrorWithoutAMessageIsAFailureToo) {
  ProbedHosts hosts = answering("{\"probe\": \"error\", \"message\": 5}");
  hosts.each([](ProbedHost& host, std::size_t) {
    host.session->ask("link", Json::object(), milliseconds(5000));
  });
  EXPECT_TRUE(hosts.all()[0].failure);
}

TEST_F(ProbedHostsTest, WhatIsNoAnswerIsPassedOver) {
  ProbedHosts hosts = answering("{\"probe\": [[[");
  hosts.each([](ProbedHost& host, std::size_t) {
    EXPECT_ERROR(host.session->ask("link", Json::object(), milliseconds(300)), MachineError,
                 "no answer to \"link\"");
  });
}

}  // namespace
}  // namespace lockstep

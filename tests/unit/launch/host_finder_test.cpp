#include "launch/job/host_finder.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "launch/hosts/instance_list.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

Host host(const std::string& name, const std::string& address) {
  return {.name = name, .ssh_name = name + ".example", .address = address};
}

std::vector<std::string> text_of(const std::vector<HostReplacement>& replacements) {
  std::vector<std::string> out;
  for (const auto& [seat, host] : replacements)
    out.push_back(fmt::format("{}={}", seat, host.name));
  return out;
}

using Texts = std::vector<std::string>;

TEST(HostFinder, HostsComeThroughAsText) {
  const std::vector<Host> hosts = {host("a", "10.0.0.1"), host("b", "")};
  const std::vector<Host> again = hosts_of_text(hosts_text(hosts));
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1].name, "b");
  EXPECT_EQ(again[0].ssh_name, "a.example");
  EXPECT_EQ(again[0].address, "10.0.0.1");
  EXPECT_ERROR(hosts_of_text("[{\"name\": 1}]"), DataError, "hosts in an unknown form");
  EXPECT_ERROR(hosts_of_text("ready"), DataError, "hosts in an unknown form");
}

TEST(HostFinder, NewIsWhoseNameAndAddressNobodyHas) {
  const std::vector<Host> known = {host("a", "10.0.0.1"), host("b", "")};
  const std::vector<Host> listed = {host("a", "10.0.0.9"), host("x", "10.0.0.1"), host("c", ""),
                                    host("d", "10.0.0.4")};
  const std::vector<Host> found = unknown_hosts(listed, known);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "c");
  EXPECT_EQ(found[1].name, "d");
}

TEST(HostFinder, APlaceGoesToTheMachineOfItsNameElseToTheFirst) {
  const std::vector<Host> seats = {host("a", ""), host("b", ""), host("c", "")};
  EXPECT_EQ(text_of(match_seats(seats, {1, 2}, {host("x", ""), host("c", "")})),
            (Texts{"2=c", "1=x"}));
  EXPECT_EQ(text_of(match_seats(seats, {1}, {host("x", ""), host("y", "")})), Texts{"1=x"});
  EXPECT_EQ(text_of(match_seats(seats, {}, {host("x", "")})), Texts{});
  EXPECT_EQ(text_of(match_seats(seats, {1}, {host("a", "10.0.0.7")})), Texts{})
      << "a is there: its name would mean two machines";
  EXPECT_EQ(text_of(match_seats(seats, {1, 2}, {host("x", "1"), host("x", "2")})), Texts{"1=x"});
}

// Runs a question to its end.
std::vector<Host> answer_of(HostFinder& finder, const std::vector<Host>& known) {
  finder.ask(known, Clock::now());
  for (int i = 0; i < 2000; ++i) {
    if (finder.next_deadline()) return {};
    std::vector<Host> out = finder.collect();
    if (!out.empty()) return out;
    ::poll(nullptr, 0, 5);
  }
  ADD_FAILURE() << "the program does not end";
  return {};
}

TEST(HostFinder, AsksAProgramWhatThereIs) {
  Texts said;
  HostFinder finder({.words = {"/bin/sh", "-c", "echo one is sent >&2; cat"},
                     .every = std::chrono::milliseconds(0)},
                    [&](const std::string& line) { said.push_back(line); });
  const std::vector<Host> found = answer_of(finder, {host("a", "10.0.0.1")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(said, Texts{"one is sent"});
}

TEST(HostFinder, SaysOnceWhatGoesWrong) {
  for (const char* shell : {"echo no rights >&2; exit 3", "echo nonsense", "kill -9 $$"}) {
    Texts said;
    HostFinder finder({.words = {"/bin/sh", "-c", shell}, .every = std::chrono::milliseconds(0)},
                      [&](const std::string& line) { said.push_back(line); });
    EXPECT_TRUE(answer_of(finder, {}).empty());
    EXPECT_TRUE(answer_of(finder, {}).empty());
    EXPECT_EQ(said.size(), 1u) << shell;
  }
}

TEST(HostFinder, ACommandForInstancesHasItsTimeAndItsWords) {
  EXPECT_EQ(output_of_command("echo [1]", std::chrono::seconds(20)), "[1]\n");
  EXPECT_ERROR(output_of_command("echo at; echo no rights >&2; exit 3", std::chrono::seconds(20)),
               MachineError, "exited with 3");
  EXPECT_ERROR(output_of_command("echo no rights >&2; exit 3", std::chrono::seconds(20)),
               MachineError, "no rights");
  EXPECT_ERROR(output_of_command("sleep 100", std::chrono::seconds(1)), MachineError,
               "did not end within 1 s");
}

}  // namespace
}  // namespace lockstep

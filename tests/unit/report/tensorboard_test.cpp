#include "report/live/tensorboard.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "report/run/sweep_cell.h"

namespace lockstep {
namespace {

void make_events(const fs::path& folder) {
  fs::create_directories(folder);
  write_file(folder / "events.out.tfevents.1.host.2.v2", "");
}

TEST(Tensorboard, ShowsTheCellsOfASweepByTheirNames) {
  TemporaryFolder folder;
  const SweepFolder sweep{folder.path() / "sweep"};
  fs::create_directories(sweep.path);
  write_sweep_index(sweep, {"a_seed-1", "b:2,x", "c"});
  for (const char* name : {"a_seed-1", "b:2,x", "c"}) {
    fs::create_directories(sweep.cell(name));
    write_cell(sweep, {.name = name});
  }
  make_events(sweep.run("a_seed-1") / "events");
  make_events(folder.path() / "c" / "events");
  const auto found = event_folders({sweep.path, folder.path() / "c"});
  ASSERT_EQ(found.size(), 2u) << "a cell without events is left out";
  EXPECT_EQ(found[0].name, "a_seed-1");
  EXPECT_EQ(found[1].name, "c");
  const fs::path tree = folder.path() / "tree";
  fs::create_directories(tree);
  link_event_folders(found, tree);
  EXPECT_EQ(fs::canonical(tree / "a_seed-1"), found[0].path);
  EXPECT_EQ(fs::canonical(tree / "c"), found[1].path);
  EXPECT_THROW(link_event_folders(found, tree), MachineError) << "they are there";
}

TEST(Tensorboard, GivesRunsOfOneNameTheirOwn) {
  TemporaryFolder folder;
  make_events(folder.path() / "x" / "lr:1e-3" / "events");
  make_events(folder.path() / "y" / "lr:1e-3" / "events");
  const auto found = event_folders({folder.path() / "x" / "lr:1e-3", folder.path() / "y/lr:1e-3/",
                                    folder.path() / "x" / "lr:1e-3"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "lr:1e-3");
  EXPECT_EQ(found[1].name, "lr:1e-3-2");
}

TEST(Tensorboard, TakesAPortThatIsFree) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int taken = ntohs(address.sin_port);
  EXPECT_THROW(choose_port(taken), MachineError);
  const int chosen = choose_port(std::nullopt);
  EXPECT_GE(chosen, 6006);
  EXPECT_LT(chosen, 6016);
  EXPECT_NE(tunnel_line(7001).find("ssh -L 7001:localhost:7001 "), std::string::npos);
}

}  // namespace
}  // namespace lockstep

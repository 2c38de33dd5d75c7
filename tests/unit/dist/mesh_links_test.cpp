// Members of a mesh find each other among strangers.
#include "dist/collectives/mesh_links.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/descriptor.h"
#include "dist/rank/meeting.h"
#include "dist/rank/network.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Sockets = std::vector<std::vector<int>>;

class MeshLinks : public ::testing::Test {
 protected:
  std::future<Sockets> member(int me, int size, const Token& secret,
                              milliseconds limit = seconds(20)) {
    MeshMembers members{.me = me, .address = "127.0.0.1", .secret = secret, .streams = 2};
    for (int rank = 0; rank < size; ++rank) members.ranks.push_back(rank);
    return std::async(std::launch::async,
                      [this, members, limit] { return connect_mesh(*store_, members, limit); });
  }
  // Where a member listens, once it does.
  MeetingPlace place_of(int me) {
    const std::vector<uint8_t> text = store_->get("mesh/" + std::to_string(me));
    return meeting_place_of(std::string(text.begin(), text.end()));
  }
  static Descriptor connection(const MeetingPlace& place) {
    return Descriptor(connect_to(place.address, place.port, 5, "the mesh"));
  }
  static void close_all(const Sockets& sockets) {
    for (const std::vector<int>& stream : sockets) {
      for (int socket : stream) {
        if (socket >= 0) ::close(socket);
      }
    }
  }

  c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
  const Token secret_ = random_token();
};

TEST_F(MeshLinks, ConnectAllPairs) {
  std::vector<std::future<Sockets>> all;
  for (int me : {2, 0, 1}) all.push_back(member(me, 3, secret_));
  for (std::future<Sockets>& one : all) {
    const Sockets sockets = one.get();
    ASSERT_EQ(sockets.size(), 2u);
    for (const std::vector<int>& stream : sockets) {
      EXPECT_EQ(std::count_if(stream.begin(), stream.end(), [](int s) { return s >= 0; }), 2);
    }
    close_all(sockets);
  }
}

// Some say nothing, some say garbage, some another secret: the member is let in at once all the
// same.
TEST_F(MeshLinks, StrangersHoldNobodyUp) {
  std::future<Sockets> first = member(0, 2, secret_);
  const MeetingPlace place = place_of(0);
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(connection(place));
    if (i % 3 == 1) {
      const std::string noise(100, static_cast<char>(i));
      ASSERT_GT(::send(strangers.back().get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    }
    if (i % 3 == 2) {
      const Introduction other = Visitor(random_token(), place.token).introduction();
      ASSERT_GT(::send(strangers.back().get(), &other, sizeof other, MSG_NOSIGNAL), 0);
      const int32_t numbers[2] = {1, 0};
      ASSERT_GT(::send(strangers.back().get(), numbers, sizeof numbers, MSG_NOSIGNAL), 0);
    }
  }
  const Clock::time_point start = Clock::now();
  close_all(member(1, 2, secret_).get());
  close_all(first.get());
  EXPECT_LT(Clock::now() - start, seconds(3));
}

TEST_F(MeshLinks, AMemberOfAnotherAttemptIsAStranger) {
  std::future<Sockets> first = member(0, 2, secret_, milliseconds(1500));
  std::future<Sockets> other = member(1, 2, random_token());
  EXPECT_ERROR(close_all(other.get()), MachineError, "what answers in place of rank 0");
  EXPECT_ERROR(close_all(first.get()), MachineError, "rank 1 did not connect to rank 0 in time");
}

TEST_F(MeshLinks, AnImpostorIsNotTakenForAMember) {
  const Descriptor listener(listen_on("127.0.0.1", 0));
  const std::string place = to_text({"127.0.0.1", port_of(listener.get()), random_token()});
  store_->set("mesh/0", std::vector<uint8_t>(place.begin(), place.end()));
  std::future<Sockets> honest = member(1, 2, secret_);
  std::vector<Descriptor> theirs;
  for (int stream = 0; stream < 2; ++stream) {
    theirs.emplace_back(::accept(listener.get(), nullptr, nullptr));
    Introduction said;
    ASSERT_EQ(::recv(theirs.back().get(), &said, sizeof said, MSG_WAITALL), sizeof said);
    // It gives back what it heard.
    ASSERT_GT(::send(theirs.back().get(), said.proof.data(), said.proof.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_ERROR(close_all(honest.get()), MachineError, "what answers in place of rank 0");
}

}  // namespace
}  // namespace lockstep

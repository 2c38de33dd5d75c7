// Pieces that ranks send each other, over loopback.
#include "dist/pieces/piece_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/error.h"
#include "dist/pieces/piece_client.h"
#include "dist/rank/network.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class Pieces : public ::testing::Test {
 protected:
  // Piece `at` of a file is so many bytes of the value file + at.
  static std::span<const std::byte> serve(const DataPiece& piece, std::vector<std::byte>& space) {
    if (piece.at == 13) throw DataError("13 is not here");
    space.assign(piece.bytes, static_cast<std::byte>(piece.file + piece.at));
    if (piece.at == 14) space.pop_back();
    return space;
  }
  PieceClient client(const std::string& meeting, milliseconds silence = milliseconds(0)) {
    return PieceClient(
        meeting, {.host = "node1", .secret = secret_, .silence = silence, .stopping = stopping_});
  }
  std::string exchange(PieceClient& client, uint64_t at, uint32_t count = 5) {
    const DataPiece piece{0, count, at};
    client.ask(piece);
    return client.receive(piece, bytes_);
  }
  const Token secret_ = random_token();
  std::atomic<bool> stopping_ = false;
  std::vector<std::byte> bytes_;
};

TEST_F(Pieces, ComeInTheOrderInWhichTheyWereAskedFor) {
  PieceServer server("127.0.0.1", secret_, serve);
  PieceClient one = client(server.meeting()), other = client(server.meeting());
  for (uint64_t at = 0; at < 10; ++at) one.ask({3, 100'000, at});
  const DataPiece of_other{1, 7, 1};
  other.ask(of_other);
  EXPECT_EQ(other.receive(of_other, bytes_), "");
  EXPECT_EQ(bytes_, std::vector<std::byte>(7, std::byte{2}));
  for (uint64_t at = 0; at < 10; ++at) {
    ASSERT_EQ(one.receive({3, 100'000, at}, bytes_), "");
    EXPECT_EQ(bytes_, std::vector<std::byte>(100'000, static_cast<std::byte>(3 + at)));
  }
}

TEST_F(Pieces, ThatAreNotThereAreSaidToBeAndTheConnectionGoesOn) {
  PieceServer server("127.0.0.1", secret_, serve);
  PieceClient asking = client(server.meeting());
  for (uint64_t at : {13, 14, 15}) asking.ask({0, 5, at});
  EXPECT_EQ(asking.receive({0, 5, 13}, bytes_), "13 is not here");
  EXPECT_EQ(asking.receive({0, 5, 14}, bytes_), "4 bytes, expected 5");
  EXPECT_EQ(asking.receive({0, 5, 15}, bytes_), "");
}

TEST_F(Pieces, AreNotForWhoDoesNotKnowTheTokenAndTheSecret) {
  PieceServer server("127.0.0.1", secret_, serve);
  std::string meeting = server.meeting();
  meeting.back() = meeting.back() == '0' ? '1' : '0';
  EXPECT_ERROR(client(meeting), MachineError, "node1 ended the connection");
  EXPECT_ERROR(PieceClient(server.meeting(), {.host = "node1", .stopping = stopping_}),
               MachineError, "node1 ended the connection");
  PieceClient known = client(server.meeting());
  EXPECT_EQ(exchange(known, 1), "");
}

// Whoever hears a greeting on the wire cannot use it again.
TEST_F(Pieces, AreNotForWhoRepeatsAGreeting) {
  PieceServer server("127.0.0.1", secret_, serve);
  const MeetingPlace place = meeting_place_of(server.meeting());
  PieceGreeting greeting;
  greeting.introduction = Visitor(secret_, place.token).introduction();
  for (const bool first : {true, false}) {
    const Descriptor socket(connect_to("127.0.0.1", place.port, 5, "the server"));
    ASSERT_EQ(::send(socket.get(), &greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    Proof answer;
    const Moved moved =
        receive_all(socket.get(), answer.data(), answer.size(), {stopping_, milliseconds(5000)});
    EXPECT_EQ(moved, first ? Moved::kAll : Moved::kEnded);
  }
}

// Listens; answers the first request with what the test says, and ends.
class OddServer {
 public:
  OddServer(const Token& secret, PieceReply reply, std::string bytes)
      : listener_(listen_on("127.0.0.1", 0)), door_(secret) {
    thread_ = std::thread([this, reply, bytes] {
      Descriptor socket(::accept(listener_.get(), nullptr, nullptr));
      PieceGreeting greeting;
      ::recv(socket.get(), &greeting, sizeof greeting, MSG_WAITALL);
      const Proof answer = door_.admit(greeting.introduction).value_or(Proof{});
      ::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      DataPiece request;
      ::recv(socket.get(), &request, sizeof request, MSG_WAITALL);
      ::send(socket.get(), &reply, sizeof reply, MSG_NOSIGNAL);
      ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    });
  }
  ~OddServer() { thread_.join(); }
  std::string meeting() const {
    return to_text({"127.0.0.1", port_of(listener_.get()), door_.token()});
  }

 private:
  Descriptor listener_;
  Doorkeeper door_;
  std::thread thread_;
};

TEST_F(Pieces, ThatAreCutShortOrOfAnotherSizeAreRefused) {
  {
    OddServer cut(secret_, {0, 100}, "only so much");
    PieceClient asking = client(cut.meeting());
    EXPECT_ERROR(exchange(asking, 1, 100), MachineError, "node1 ended the connection");
  }
  OddServer larger(secret_, {0, 101}, "");
  PieceClient asking = client(larger.meeting());
  EXPECT_ERROR(exchange(asking, 1, 100), MachineError, "sent 101 bytes");
}

TEST_F(Pieces, OfAServerThatIsGoneOrSilentAreWaitedForNoLonger) {
  Descriptor silent(listen_on("127.0.0.1", 0));
  const std::string there = to_text({"127.0.0.1", port_of(silent.get()), random_token()});
  EXPECT_ERROR(client(there, milliseconds(200)), MachineError, "node1 sent no data");
  silent.close();
  EXPECT_ERROR(client(there), MachineError, "cannot connect to the data of node1");

  auto server = std::make_unique<PieceServer>("127.0.0.1", secret_, serve);
  PieceClient asking = client(server->meeting());
  EXPECT_EQ(exchange(asking, 1), "");
  server.reset();
  EXPECT_ERROR(exchange(asking, 1), MachineError, "node1 ended the connection");
}

TEST_F(Pieces, AreNotWaitedForByWhoStops) {
  Descriptor silent(listen_on("127.0.0.1", 0));
  stopping_ = true;
  EXPECT_ERROR(client(to_text({"127.0.0.1", port_of(silent.get()), random_token()})), MachineError,
               "node1");
}

TEST_F(Pieces, AreNotTakenFromAnImpostor) {
  OddServer impostor(random_token(), {0, 5}, "12345");
  EXPECT_ERROR(client(impostor.meeting()), MachineError, "no rank of this run");
}

}  // namespace
}  // namespace lockstep

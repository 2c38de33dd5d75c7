// The rendezvous store: what it answers to ranks, and to everyone else nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "dist/rank/network.h"
#include "dist/store/store_client.h"
#include "dist/store/store_server.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Parts = std::vector<std::string>;

constexpr seconds kTime{10};

class Store : public ::testing::Test {
 protected:
  Store() {
    const int listener = listen_on("127.0.0.1", 0);
    port_ = port_of(listener);
    server_.emplace(listener, secret_);
  }
  StoreClient client() const { return {"127.0.0.1", port_, secret_, kTime}; }
  StoreFrame ask(StoreClient& client, StoreVerb verb, Parts parts = {}, int64_t number = 0,
                 uint32_t wait = 0) const {
    return client.ask(
        {.verb = verb, .number = number, .wait_milliseconds = wait, .parts = std::move(parts)},
        kTime);
  }
  // A connection that has said nothing yet.
  Descriptor stranger() const { return Descriptor(connect_to("127.0.0.1", port_, 5, "the store")); }
  static void say(const Descriptor& socket, std::string_view bytes) {
    ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  // Everything that the server says until it closes the connection, or for so long.
  static std::string heard(const Descriptor& socket, milliseconds limit, bool& closed) {
    std::string out;
    const Clock::time_point end = Clock::now() + limit;
    closed = false;
    for (;;) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
      pollfd wanted{socket.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) <= 0) return out;
      char space[4096];
      const ssize_t got = ::recv(socket.get(), space, sizeof space, 0);
      closed = got <= 0;
      if (closed) return out;
      out.append(space, static_cast<std::size_t>(got));
    }
  }
  static void expect_closed(const Descriptor& socket, const char* who) {
    bool closed = false;
    const std::string said = heard(socket, seconds(3), closed);
    EXPECT_TRUE(closed) << who;
    EXPECT_LE(said.size(), sizeof(Token)) << who << ": more than its random bytes";
  }
  // What a client that knows `secret` answers to the server's bytes.
  static Introduction proof_for(const std::string& nonce, const Token& secret) {
    Token theirs;
    std::memcpy(theirs.data(), nonce.data(), theirs.size());
    return Visitor(secret, theirs).introduction();
  }
  static std::string_view bytes_of(const Introduction& proof) {
    return {reinterpret_cast<const char*>(&proof), sizeof proof};
  }

  const Token secret_ = random_token();
  int port_ = 0;
  std::optional<StoreServer> server_;
};

TEST_F(Store, KeepsValues) {
  StoreClient one = client(), other = client();
  const std::string value("\0\1binary\n", 9);
  ask(one, StoreVerb::kSet, {"key", value});
  EXPECT_EQ(ask(other, StoreVerb::kGet, {"key"}).parts, Parts{value});
  EXPECT_EQ(ask(other, StoreVerb::kCheck, {"key"}).number, 1);
  EXPECT_EQ(ask(other, StoreVerb::kCheck, {"key", "absent"}).number, 0);
  EXPECT_EQ(ask(one, StoreVerb::kAdd, {"sum"}, 5).number, 5);
  EXPECT_EQ(ask(other, StoreVerb::kAdd, {"sum"}, -7).number, -2);
  EXPECT_EQ(ask(one, StoreVerb::kGet, {"sum"}).parts, Parts{"-2"});
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 2);
  EXPECT_EQ(ask(one, StoreVerb::kErase, {"key"}).number, 1);
  EXPECT_EQ(ask(one, StoreVerb::kErase, {"key"}).number, 0);
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 1);
}

TEST_F(Store, GivesSeveralValuesAtOnceWhenAllAreThere) {
  StoreClient one = client(), other = client();
  ask(one, StoreVerb::kSet, {"a", "1"});
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(50));
    ask(other, StoreVerb::kSet, {"b", "2"});
  });
  EXPECT_EQ(ask(one, StoreVerb::kGet, {"a", "b", "a"}, 0, 5000).parts, (Parts{"1", "2", "1"}));
  late.join();
  EXPECT_FALSE(ask(one, StoreVerb::kGet, {"a", "absent"}, 0, 50).done);
}

// Three values fill more than a frame: that client is closed, and the others go on.
TEST_F(Store, SendsNoAnswerThatIsTooLarge) {
  StoreClient one = client(), other = client();
  ask(one, StoreVerb::kSet, {"large", std::string(6 << 20, 'x')});
  EXPECT_ERROR(ask(one, StoreVerb::kGet, {"large", "large", "large"}), MachineError,
               "rank 0 closed");
  EXPECT_EQ(ask(other, StoreVerb::kCheck, {"large"}).number, 1);
}

// The four cases of c10d's TCPStore.
TEST_F(Store, ExchangesAValueForAnother) {
  StoreClient one = client();
  EXPECT_EQ(ask(one, StoreVerb::kCompareSet, {"k", "expected", "new"}).parts, Parts{"expected"});
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 0);
  EXPECT_EQ(ask(one, StoreVerb::kCompareSet, {"k", "", "first"}).parts, Parts{"first"});
  EXPECT_EQ(ask(one, StoreVerb::kCompareSet, {"k", "wrong", "second"}).parts, Parts{"first"});
  EXPECT_EQ(ask(one, StoreVerb::kCompareSet, {"k", "first", "second"}).parts, Parts{"second"});
}

TEST_F(Store, AnswersWhoWaitsWhenAllIsThere) {
  StoreClient one = client(), other = client();
  std::thread late([&] {
    ask(other, StoreVerb::kSet, {"b", "2"});
    std::this_thread::sleep_for(milliseconds(50));
    ask(other, StoreVerb::kSet, {"a", "1"});
  });
  EXPECT_TRUE(ask(one, StoreVerb::kWait, {"a", "b"}, 0, 5000).done);
  late.join();
  EXPECT_EQ(ask(one, StoreVerb::kGet, {"a"}, 0, 5000).parts, Parts{"1"});
}

TEST_F(Store, SaysWhenAWaitWasTooLong) {
  StoreClient one = client();
  const Clock::time_point start = Clock::now();
  EXPECT_FALSE(ask(one, StoreVerb::kGet, {"absent"}, 0, 100).done);
  EXPECT_GE(Clock::now() - start, milliseconds(100));
  ask(one, StoreVerb::kSet, {"here", "x"});
  EXPECT_TRUE(ask(one, StoreVerb::kGet, {"here"}).done) << "the connection goes on";
}

TEST_F(Store, ServesManyAtOnce) {
  constexpr int kClients = 40;
  std::vector<std::thread> threads;
  Parts all;
  for (int i = 0; i < kClients; ++i) all.push_back(std::to_string(i));
  std::atomic<int> there = 0;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      StoreClient mine = client();
      ask(mine, StoreVerb::kSet, {all[i], std::string(10'000, 'x')});
      if (ask(mine, StoreVerb::kWait, all, 0, 10'000).done) ++there;
      for (int k = 0; k < 50; ++k) ask(mine, StoreVerb::kAdd, {"sum"}, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(there, kClients);
  StoreClient last = client();
  EXPECT_EQ(ask(last, StoreVerb::kAdd, {"sum"}).number, 50 * kClients);
}

TEST_F(Store, EndsItsClientsWithIt) {
  StoreClient one = client();
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server_.reset();
  });
  const Clock::time_point start = Clock::now();
  EXPECT_ERROR(ask(one, StoreVerb::kGet, {"absent"}, 0, 60'000), MachineError, "rank 0 closed");
  end.join();
  EXPECT_LT(Clock::now() - start, seconds(5));
  EXPECT_ERROR(ask(one, StoreVerb::kCount), MachineError, "closed");
}

// A rank of an earlier attempt, or of another run.
TEST_F(Store, DoesNotKnowAnotherSecret) {
  Token other = secret_;
  other[15] ^= 1;
  const Clock::time_point start = Clock::now();
  EXPECT_ERROR(StoreClient("127.0.0.1", port_, other, kTime), MachineError, "LOCKSTEP_SECRET");
  EXPECT_LT(Clock::now() - start, seconds(2)) << "at once";
  StoreClient one = client();
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 0);
}

// Who listens there without the secret learns nothing that it could use, and is found out.
TEST(StoreClient, DoesNotBelieveAStrangersStore) {
  const Descriptor listener(listen_on("127.0.0.1", 0));
  std::thread impostor([&] {
    const Descriptor one(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string claims(sizeof(Token) + sizeof(Proof), 'x');
    EXPECT_EQ(::send(one.get(), claims.data(), claims.size(), MSG_NOSIGNAL), std::ssize(claims));
    Introduction heard;
    EXPECT_EQ(::recv(one.get(), &heard, sizeof heard, MSG_WAITALL),
              static_cast<ssize_t>(sizeof heard));
  });
  EXPECT_ERROR(StoreClient("127.0.0.1", port_of(listener.get()), random_token(), kTime),
               MachineError, "LOCKSTEP_SECRET");
  impostor.join();
}

TEST_F(Store, AnswersNothingToStrangers) {
  const Descriptor http = stranger(), noise = stranger(), claim = stranger();
  say(http, "GET / HTTP/1.1\r\nHost: rank0\r\nUser-Agent: a port scanner\r\n\r\n");
  expect_closed(http, "HTTP");
  say(noise, std::string(100'000, '\xff'));
  expect_closed(noise, "noise");
  // c10d's TCPStore begins with a query of 1 byte and a magic number, and waits.
  std::string query("\x00\x5a\xf3\xc9\x85", 5);
  query.resize(65);
  say(claim, query);
  expect_closed(claim, "a client of TCPStore");
  StoreClient one = client();
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 0);
}

// What was overheard of a rank that was let in does not let another in.
TEST_F(Store, DoesNotTakeAProofTwice) {
  bool closed = false;
  const Descriptor first = stranger();
  const std::string nonce = heard(first, milliseconds(200), closed);
  ASSERT_EQ(nonce.size(), sizeof(Token));
  const Introduction proof = proof_for(nonce, secret_);
  say(first, bytes_of(proof));
  EXPECT_EQ(heard(first, milliseconds(200), closed).size(), sizeof(Proof));
  EXPECT_FALSE(closed) << "the first is let in";
  const Descriptor second = stranger();
  EXPECT_NE(heard(second, milliseconds(200), closed), nonce);
  say(second, bytes_of(proof));
  expect_closed(second, "a replayed proof");
}

TEST_F(Store, ClosesWhoSaysNothing) {
  const Descriptor silent = stranger(), slow = stranger();
  say(slow, "a");
  StoreClient one = client();
  EXPECT_FALSE(ask(one, StoreVerb::kWait, {"absent"}, 0, 4000).done) << "they hold up nobody";
  expect_closed(silent, "silent");
  expect_closed(slow, "slow");
}

TEST_F(Store, HoldsNoMoreThanSomeStrangers) {
  const Descriptor oldest = stranger();
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 80; ++i) crowd.push_back(stranger());
  expect_closed(oldest, "the oldest");
  StoreClient one = client();
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 0);
}

// Also a rank's frames are checked: one that is damaged ends its connection, nobody else's.
TEST_F(Store, ClosesAConnectionOfDamagedFrames) {
  auto frame = [](uint32_t size, std::string_view body) {
    return std::string(reinterpret_cast<const char*>(&size), sizeof size) + std::string(body);
  };
  std::string verb = encode({.verb = StoreVerb::kSet, .parts = {"k", "v"}});
  verb[4] = '\x7f';
  std::string length = encode({.verb = StoreVerb::kSet, .parts = {"k", "v"}});
  length[18] = '\xff';  // of the first part
  const std::vector<std::string> damaged = {
      frame(0xffffffff, "x"),
      frame(0, ""),
      verb,
      length,
      encode({.verb = StoreVerb::kSet, .parts = {"key without a value"}}),
      encode({.verb = StoreVerb::kCompareSet}),
  };
  for (const std::string& bytes : damaged) {
    bool closed = false;
    const Descriptor socket = stranger();
    say(socket, bytes_of(proof_for(heard(socket, milliseconds(100), closed), secret_)));
    EXPECT_EQ(heard(socket, milliseconds(100), closed).size(), sizeof(Proof));
    say(socket, bytes);
    heard(socket, seconds(3), closed);
    EXPECT_TRUE(closed) << testing::PrintToString(bytes.substr(0, 30));
  }
  StoreClient one = client();
  EXPECT_EQ(ask(one, StoreVerb::kCount).number, 0);
}

TEST(StoreFrames, ComeBackAsTheyWere) {
  const StoreFrame frame{.verb = StoreVerb::kCompareSet,
                         .done = false,
                         .number = -12345678901,
                         .wait_milliseconds = 4'000'000'000,
                         .parts = {"", std::string("\0\n", 2), std::string(100'000, 'x')}};
  std::string bytes = encode(frame) + encode({.verb = StoreVerb::kCount});
  std::string cut = bytes.substr(0, 1000);
  EXPECT_FALSE(take_store_frame(cut)) << "not whole yet";
  const StoreFrame back = take_store_frame(bytes).value();
  EXPECT_EQ(back.verb, frame.verb);
  EXPECT_EQ(back.done, frame.done);
  EXPECT_EQ(back.number, frame.number);
  EXPECT_EQ(back.wait_milliseconds, frame.wait_milliseconds);
  EXPECT_EQ(back.parts, frame.parts);
  EXPECT_EQ(take_store_frame(bytes).value().verb, StoreVerb::kCount);
  EXPECT_TRUE(bytes.empty());
  EXPECT_ERROR(encode({.parts = {std::string(kMostStoreBytes, 'x')}}), MachineError, "at a time");
}

}  // namespace
}  // namespace lockstep

// Connecting sockets while signals arrive and where nobody answers.
#include "dist/rank/network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

#include "base/descriptor.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// A listener whose queue is full: the kernel drops further calls, and their callers call again
// after a second.
class FullListener {
 public:
  FullListener() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_.get(), address(), sizeof address_), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    address_.sin_port = htons(static_cast<uint16_t>(port_of(listener_.get())));
    do {
      callers_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    } while (call(callers_.back(), milliseconds(50)) == 0);
    callers_.pop_back();  // it would take the place of another
  }

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  // Returns what connect_until() says of another socket.
  int call(const Descriptor& socket, milliseconds limit) const {
    return connect_until(Clock::now() + limit, socket.get(), address(), sizeof address_);
  }
  int call(milliseconds limit) const {
    return call(Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                limit);
  }
  // Makes room for those that call again.
  void take_one() { taken_ = Descriptor(::accept(listener_.get(), nullptr, nullptr)); }

 private:
  sockaddr_in address_{};
  Descriptor listener_;
  Descriptor taken_;
  std::vector<Descriptor> callers_;
};

TEST(ConnectUntil, EndsInTimeWhereNobodyAnswers) {
  FullListener full;
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(full.call(milliseconds(200)), ETIMEDOUT);
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
}

TEST(ConnectUntil, SaysThatNobodyListens) {
  const int port = port_of(Descriptor(listen_on("127.0.0.1", 0)).get());
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  EXPECT_EQ(connect_until(Clock::now() + seconds(5), socket.get(),
                          reinterpret_cast<const sockaddr*>(&to), sizeof to),
            ECONNREFUSED);
}

TEST(ConnectUntil, WaitsOnThroughSignals) {
  FullListener full;
  struct sigaction ours {
  }, before{};
  ours.sa_handler = [](int) {};  // poll() ends for it, as for a stop
  ASSERT_EQ(::sigaction(SIGUSR1, &ours, &before), 0);
  const pthread_t caller = ::pthread_self();
  std::future<void> others = std::async(std::launch::async, [&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(milliseconds(40));
      ::pthread_kill(caller, SIGUSR1);
    }
    full.take_one();
  });
  EXPECT_EQ(full.call(seconds(20)), 0);
  others.get();
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace lockstep

#include "dist/pieces/piece_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMostConversations = 512;  // more peers, and strangers, wait their turn
constexpr seconds kGreetingLimit{10};
constexpr seconds kSilence{60};  // of who does not take what it asked for
constexpr milliseconds kLook{100};

// Threads inherit the signal mask; signals are for the program's main thread.
std::thread start_without_signals(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

PieceServer::PieceServer(const std::string& address, const Token& secret, ServePiece serve)
    : serve_(std::move(serve)), door_(secret), listener_(listen_on(address, 0)) {
  meeting_ = to_text({address, port_of(listener_.get()), door_.token()});
  acceptor_ = start_without_signals([this] { accept_all(); });
}

PieceServer::~PieceServer() {
  stopping_ = true;
  acceptor_.join();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return conversations_ == 0; });
}

void PieceServer::accept_all() {
  while (!stopping_) {
    pollfd wanted{listener_.get(), POLLIN, 0};
    if (::poll(&wanted, 1, static_cast<int>(kLook.count())) <= 0) continue;
    {
      std::unique_lock lock(mutex_);
      const auto free = [this] { return conversations_ < kMostConversations; };
      if (!changed_.wait_for(lock, kLook, free)) continue;
    }
    auto socket = std::make_shared<Descriptor>(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket->open()) continue;
    {
      std::lock_guard lock(mutex_);
      ++conversations_;
    }
    std::thread([this, socket] {
      converse(*socket);
      std::lock_guard lock(mutex_);
      --conversations_;
      changed_.notify_all();
    }).detach();
  }
}

// Returns false for a stranger.
bool PieceServer::greet(int socket) {
  PieceGreeting greeting;
  const PieceGreeting expected;
  const PiecePatience patience{stopping_, kGreetingLimit};
  if (receive_all(socket, &greeting, sizeof greeting, patience) != Moved::kAll) return false;
  const std::optional<Proof> answer = door_.admit(greeting.introduction);
  return answer && std::memcmp(greeting.magic, expected.magic, sizeof expected.magic) == 0 &&
         send_all(socket, answer->data(), answer->size(), patience) == Moved::kAll;
}

// Answers requests until the other side ends the connection.
void PieceServer::converse(const Descriptor& socket) {
  if (!greet(socket.get())) return;
  send_promptly(socket.get());
  std::vector<std::byte> space;
  std::string failure;
  DataPiece piece;
  while (receive_all(socket.get(), &piece, sizeof piece, {stopping_, milliseconds(0)}) ==
         Moved::kAll) {
    std::span<const std::byte> bytes;
    failure.clear();
    try {
      bytes = serve_(piece, space);
      if (bytes.size() != piece.bytes) {
        failure = fmt::format("{} bytes, expected {}", bytes.size(), piece.bytes);
      }
    } catch (const Error& error) {
      failure = error.describe();
    }
    if (!failure.empty()) bytes = std::as_bytes(std::span(failure));
    const PieceReply reply{failure.empty() ? 0U : 1U, static_cast<uint32_t>(bytes.size())};
    const PiecePatience patience{stopping_, kSilence};
    if (send_all(socket.get(), &reply, sizeof reply, patience) != Moved::kAll) return;
    if (send_all(socket.get(), bytes.data(), bytes.size(), patience) != Moved::kAll) return;
  }
}

}  // namespace lockstep

#include "serve/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr std::size_t kMostAhead = 64 << 10;  // of requests behind one that has no answer yet
// A client that still sends while it is told why not gets that long to read it: closed at once, the
// connection would be reset and the answer lost.
constexpr milliseconds kLinger{1'000};
constexpr milliseconds kNoDescriptors{100};

// What a read came to.
enum class Received { kSome, kNothingNow, kEnd };

Received receive(int socket, std::string& into) {
  char bytes[kReadAtOnce];
  const ssize_t size = ::recv(socket, bytes, sizeof bytes, 0);
  if (size > 0) {
    into.append(bytes, static_cast<std::size_t>(size));
    return Received::kSome;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNothingNow;
  return Received::kEnd;
}

}  // namespace

HttpServer::HttpServer(EventLoop& loop, Descriptor listener, const HttpServerOptions& options,
                       HttpService& service)
    : loop_(loop), listener_(std::move(listener)), options_(options), service_(service) {
  ::fcntl(listener_.get(), F_SETFL, ::fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  watch_listener();
}

HttpServer::~HttpServer() {
  if (listener_.open()) loop_.forget(listener_.get());
  for (const auto& [id, connection] : connections_) loop_.forget(connection->socket.get());
}

void HttpServer::watch_listener() {
  loop_.watch(listener_.get(), POLLIN, [this] { accept_all(); });
}

void HttpServer::accept_all() {
  while (true) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        loop_.forget(listener_.get());  // it would be ready again at once
        accept_again_ = Clock::now() + kNoDescriptors;
      }
      return;
    }
    int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const uint64_t id = next_++;
    Connection& connection =
        *connections_.emplace(id, std::make_unique<Connection>(options_.limits)).first->second;
    connection.socket = std::move(socket);
    connection.deadline = Clock::now() + options_.idle;
    if (connections_.size() > options_.connections) {
      refuse(id, {503, "too many connections (--connections)"});
    } else {
      watch(id, connection);
    }
  }
}

void HttpServer::watch(uint64_t id, Connection& connection) {
  short events = POLLIN;
  if (connection.phase == Phase::kWriting) events = POLLOUT;
  if (connection.phase == Phase::kWorking && connection.input.size() >= kMostAhead) {
    events = POLLRDHUP;
  }
  loop_.watch(connection.socket.get(), events, [this, id] { ready(id); });
}

void HttpServer::ready(uint64_t id) {
  Connection& connection = *connections_.at(id);
  switch (connection.phase) {
    case Phase::kWriting:
      write_some(id, connection);
      break;
    case Phase::kLingering: {
      std::string ignored;
      if (receive(connection.socket.get(), ignored) == Received::kEnd) close(id);
      return;
    }
    case Phase::kReading:
    case Phase::kWorking:
      if (receive(connection.socket.get(), connection.input) == Received::kEnd) {
        if (connection.phase == Phase::kWorking) service_.abandon(id);
        return close(id);
      }
      if (connection.phase == Phase::kWorking) return watch(id, connection);
  }
  advance(id);
}

// Parses and hands over requests as far as the input goes and each is answered at once.
void HttpServer::advance(uint64_t id) {
  auto found = connections_.find(id);
  if (found == connections_.end() || found->second->advancing) return;
  found->second->advancing = true;
  while (found != connections_.end() && found->second->phase == Phase::kReading &&
         !found->second->input.empty() && parse(id, *found->second)) {
    found = connections_.find(id);
  }
  found = connections_.find(id);
  if (found != connections_.end()) found->second->advancing = false;
}

// Returns whether a request was complete; the connection may be closed then.
bool HttpServer::parse(uint64_t id, Connection& connection) {
  if (!connection.timed) connection.deadline = Clock::now() + options_.request;
  connection.timed = true;
  if (auto fault = connection.parser.feed(connection.input)) {
    refuse(id, *fault);
    return true;
  }
  if (connection.parser.take_expectation()) {
    // A few bytes on a connection on which nothing else is under way.
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    ::send(connection.socket.get(), go_on.data(), go_on.size(), MSG_NOSIGNAL);
  }
  if (!connection.parser.done()) return false;
  IncomingRequest request = connection.parser.take();
  connection.phase = Phase::kWorking;
  connection.timed = false;
  connection.deadline = Clock::time_point::max();
  connection.head = request.method == "HEAD";
  connection.keep_alive = request.keep_alive;
  watch(id, connection);
  service_.handle(id, std::move(request));
  return true;
}

// Answers what is no request, and ends the connection.
void HttpServer::refuse(uint64_t id, const HttpParser::Fault& fault) {
  Connection& connection = *connections_.at(id);
  service_.refused(fault.status);
  connection.keep_alive = connection.head = false;
  HttpResponse response = error_response(fault.status, fault.text);
  if (fault.status == 503) response.headers.emplace_back("Retry-After", "1");
  send(id, connection, to_wire(response, false, false));
}

void HttpServer::answer(uint64_t request, const HttpResponse& response) {
  const auto found = connections_.find(request);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (stopping_) connection.keep_alive = false;
  send(request, connection, to_wire(response, connection.head, connection.keep_alive));
  advance(request);
}

void HttpServer::send(uint64_t id, Connection& connection, const std::string& bytes) {
  connection.output = bytes;
  connection.sent = 0;
  connection.phase = Phase::kWriting;
  connection.deadline = Clock::now() + options_.stalled;
  write_some(id, connection);
}

void HttpServer::write_some(uint64_t id, Connection& connection) {
  while (connection.sent < connection.output.size()) {
    const ssize_t size = ::send(connection.socket.get(), connection.output.data() + connection.sent,
                                connection.output.size() - connection.sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return watch(id, connection);
    if (size < 0) return close(id);
    connection.sent += static_cast<std::size_t>(size);
    connection.deadline = Clock::now() + options_.stalled;
  }
  written(id, connection);
}

void HttpServer::written(uint64_t id, Connection& connection) {
  connection.output.clear();
  connection.output.shrink_to_fit();
  connection.timed = false;
  if (connection.keep_alive && !stopping_) {
    connection.phase = Phase::kReading;
    connection.deadline = Clock::now() + options_.idle;
  } else {
    ::shutdown(connection.socket.get(), SHUT_WR);
    connection.phase = Phase::kLingering;
    connection.deadline = Clock::now() + kLinger;
  }
  watch(id, connection);
}

void HttpServer::close(uint64_t id) {
  const auto found = connections_.find(id);
  loop_.forget(found->second->socket.get());
  connections_.erase(found);
}

void HttpServer::stop_accepting() {
  stopping_ = true;
  accept_again_.reset();
  loop_.forget(listener_.get());
  listener_.close();
  std::vector<uint64_t> without_request;
  for (const auto& [id, connection] : connections_) {
    if (connection->phase == Phase::kReading && !connection->timed) without_request.push_back(id);
  }
  for (uint64_t id : without_request) close(id);
}

std::size_t HttpServer::unanswered() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(), [](const auto& item) {
        const Connection& connection = *item.second;
        return connection.phase == Phase::kWorking || connection.phase == Phase::kWriting ||
               (connection.phase == Phase::kReading && connection.timed);
      }));
}

std::optional<Clock::time_point> HttpServer::deadline() const {
  std::optional<Clock::time_point> first = accept_again_;
  for (const auto& [id, connection] : connections_) {
    if (connection->deadline == Clock::time_point::max()) continue;
    first = earlier(first, connection->deadline);
  }
  return first;
}

void HttpServer::expire() {
  const Clock::time_point now = Clock::now();
  if (accept_again_ && *accept_again_ <= now) {
    accept_again_.reset();
    watch_listener();
  }
  std::vector<uint64_t> late;
  for (const auto& [id, connection] : connections_) {
    if (connection->deadline <= now) late.push_back(id);
  }
  for (uint64_t id : late) {
    const Connection& connection = *connections_.at(id);
    if (connection.phase == Phase::kReading && connection.timed) {
      const double seconds = std::chrono::duration<double>(options_.request).count();
      refuse(id, {408, fmt::format("the request was not complete within {} s (--request-timeout)",
                                   seconds)});
    } else {
      close(id);
    }
  }
}

}  // namespace lockstep

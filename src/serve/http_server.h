// Serves HTTP/1.1 on a listening socket, in one thread and one EventLoop: a connection that is
// slow, silent or gone keeps no other waiting. A request is handed over when it is complete; its
// answer may come at any later time. Requests of one connection are answered one after the other.
//
// Deadlines: a request that is not complete within Limits::request of its first byte is answered
// with 408; a connection without a request is closed after Limits::idle, one whose client takes
// nothing of an answer after Limits::stalled.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/descriptor.h"
#include "launch/processes/event_loop.h"
#include "serve/http_message.h"
#include "serve/http_parser.h"

namespace lockstep {

class HttpService {
 public:
  virtual ~HttpService() = default;
  // A request is complete: HttpServer::answer(request, ...) now or later.
  virtual void handle(uint64_t request, IncomingRequest message) = 0;
  // The client of a request that has no answer yet is gone.
  virtual void abandon(uint64_t request) = 0;
  // The server itself answers with this status: what was sent is no request.
  virtual void refused(int status) = 0;
};

struct HttpServerOptions {
  HttpParser::Limits limits;
  std::size_t connections = 256;  // more of them are told 503 and closed
  std::chrono::milliseconds request{10'000}, idle{60'000}, stalled{30'000};
};

class HttpServer {
 public:
  // `listener` listens; all functions are called in the loop's thread. `loop` and `service` must
  // outlive this.
  HttpServer(EventLoop& loop, Descriptor listener, const HttpServerOptions& options,
             HttpService& service);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Sends the answer; nothing happens when the client is gone.
  void answer(uint64_t request, const HttpResponse& response);

  // Takes no more connections and closes those without a request; the others are closed when theirs
  // is answered.
  void stop_accepting();

  std::size_t connections() const { return connections_.size(); }
  std::size_t unanswered() const;  // requests, complete or not, whose answer is not yet sent

  // Returns when expire() has something to do, if there is anything.
  std::optional<Clock::time_point> deadline() const;
  void expire();

 private:
  enum class Phase { kReading, kWorking, kWriting, kLingering };
  struct Connection {
    explicit Connection(HttpParser::Limits limits) : parser(limits) {}
    Descriptor socket;
    HttpParser parser;
    Phase phase = Phase::kReading;
    std::string input, output;  // input: what came and is not parsed yet
    std::size_t sent = 0;       // of output
    bool head = false, keep_alive = true;
    bool timed = false;  // a request has begun to arrive; `deadline` is when it must be complete
    bool advancing = false;  // advance() is under way
    Clock::time_point deadline = Clock::time_point::max();
  };

  void watch_listener();
  void accept_all();
  void watch(uint64_t id, Connection& connection);
  void ready(uint64_t id);
  void advance(uint64_t id);
  bool parse(uint64_t id, Connection& connection);
  void refuse(uint64_t id, const HttpParser::Fault& fault);
  void send(uint64_t id, Connection& connection, const std::string& bytes);
  void write_some(uint64_t id, Connection& connection);
  void written(uint64_t id, Connection& connection);
  void close(uint64_t id);

  EventLoop& loop_;
  Descriptor listener_;
  HttpServerOptions options_;
  HttpService& service_;
  bool stopping_ = false;
  std::optional<Clock::time_point> accept_again_;  // no descriptor was left for a connection
  uint64_t next_ = 1;
  // By a number that is never used again: that of its requests too, of which one is open at a time.
  std::map<uint64_t, std::unique_ptr<Connection>> connections_;
};

}  // namespace lockstep

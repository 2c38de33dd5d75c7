// Parses the requests of one connection as their bytes arrive. Boost.Beast's parser does the work
// (headers alone: nothing is linked); sockets, deadlines and limits in time are its caller's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "serve/http_message.h"

namespace lockstep {

class HttpParser {
 public:
  struct Limits {
    uint64_t body_bytes = 1 << 20;
    uint32_t header_bytes = 16 << 10;
  };
  // What is wrong with a request; no further one can be read from this connection.
  struct Fault {
    int status = 400;
    std::string text;
  };

  explicit HttpParser(Limits limits);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  // Takes the bytes of one request from the front of `bytes`; what it left there belongs to the
  // next request, or is needed again with more behind it. Returns what is wrong, if something is.
  std::optional<Fault> feed(std::string& bytes);

  bool begun() const;  // whether a byte of a request has been taken
  bool done() const;   // whether a request is complete
  // Whether the client waits for "100 Continue" before it sends the body; true once a request.
  bool take_expectation();
  // Returns the complete request, and begins the next one. REQUIRES done().
  IncomingRequest take();

 private:
  struct Parser;
  void restart();

  Limits limits_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace lockstep

// A request and a response of HTTP/1.1 (RFC 9112) as values, without sockets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

struct IncomingRequest {
  std::string method;        // "POST"
  std::string path;          // of the target, without the query: "/translate"
  std::string content_type;  // in lower case, without parameters; empty: none was sent
  std::string body;
  bool keep_alive = true;  // whether the client wants to go on with this connection
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides those of every response
};

std::string_view reason_of(int status);

// Returns {"error": "..."} with that status, and "line" where it is not 0. U+FFFD stands for what
// is no UTF-8 in the text.
HttpResponse error_response(int status, const std::string& text, std::size_t line = 0);

// Returns the bytes of a response. `head`: without the body, whose length it names all the same.
std::string to_wire(const HttpResponse& response, bool head, bool keep_alive);

}  // namespace lockstep

#include "serve/http_message.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

HttpResponse error_response(int status, const std::string& text, std::size_t line) {
  nlohmann::ordered_json body{{"error", text}};
  if (line > 0) body["line"] = line;
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return {.status = status, .body = body.dump(-1, ' ', false, kReplace) + "\n"};
}

std::string to_wire(const HttpResponse& response, bool head, bool keep_alive) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nServer: lockstep/" LOCKSTEP_VERSION
                                "\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n",
                                response.status, reason_of(response.status), response.content_type,
                                response.body.size(), keep_alive ? "keep-alive" : "close");
  for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
  out += "\r\n";
  if (!head) out += response.body;
  return out;
}

}  // namespace lockstep

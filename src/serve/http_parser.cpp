#include "serve/http_parser.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/text.h"

namespace lockstep {

namespace http = boost::beast::http;

struct HttpParser::Parser {
  http::request_parser<http::string_body> parser;
  bool expectation_taken = false;
};

namespace {

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

// Returns the path of a target in origin form ("/a?b") or absolute form ("http://host/a?b").
std::string path_of(std::string target) {
  const std::size_t scheme = target.find("://");
  if (scheme != std::string::npos && !target.starts_with("/")) {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find('?'));
}

HttpParser::Fault fault_of(const boost::system::error_code& error,
                           const HttpParser::Limits& limits) {
  if (error == http::error::body_limit) {
    return {413, fmt::format("the request's body has more than {} bytes (--max-request)",
                             with_commas(static_cast<int64_t>(limits.body_bytes)))};
  }
  if (error == http::error::header_limit) {
    return {431, fmt::format("the request's header has more than {} bytes",
                             with_commas(limits.header_bytes))};
  }
  if (error == http::error::bad_version) return {505, "expected HTTP/1.1 or HTTP/1.0"};
  return {400, fmt::format("not a request of HTTP/1.1: {}", error.message())};
}

}  // namespace

HttpParser::HttpParser(Limits limits) : limits_(limits) { restart(); }

HttpParser::~HttpParser() = default;

void HttpParser::restart() {
  parser_ = std::make_unique<Parser>();
  parser_->parser.eager(true);
  parser_->parser.header_limit(limits_.header_bytes);
  parser_->parser.body_limit(limits_.body_bytes);
}

std::optional<HttpParser::Fault> HttpParser::feed(std::string& bytes) {
  http::request_parser<http::string_body>& parser = parser_->parser;
  while (!parser.is_done() && !bytes.empty()) {
    boost::system::error_code error;
    const std::size_t used = parser.put(boost::asio::buffer(bytes), error);
    bytes.erase(0, used);
    if (error == http::error::need_more) return std::nullopt;
    if (error) return fault_of(error, limits_);
    if (used == 0) return std::nullopt;
  }
  if (!parser.is_done()) return std::nullopt;
  // RFC 9112, section 3.2: one Host, from HTTP/1.1 on.
  const auto& message = parser.get();
  if (message.version() == 11 && message.count(http::field::host) != 1) {
    return Fault{400, "expected one Host header"};
  }
  return std::nullopt;
}

bool HttpParser::begun() const { return parser_->parser.got_some(); }

bool HttpParser::done() const { return parser_->parser.is_done(); }

bool HttpParser::take_expectation() {
  if (parser_->expectation_taken || !parser_->parser.is_header_done() || done()) return false;
  const auto& message = parser_->parser.get();
  if (message.version() < 11) return false;
  if (!equals_ignoring_case(text_of(message[http::field::expect]), "100-continue")) return false;
  parser_->expectation_taken = true;
  return true;
}

IncomingRequest HttpParser::take() {
  http::request<http::string_body> message = parser_->parser.release();
  restart();
  const std::string type = text_of(message[http::field::content_type]);
  return {.method = text_of(message.method_string()),
          .path = path_of(text_of(message.target())),
          .content_type = lower_ascii(trim(type.substr(0, type.find(';')))),
          .body = std::move(message.body()),
          .keep_alive = message.keep_alive()};
}

}  // namespace lockstep

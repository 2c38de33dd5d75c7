// Requests to `lockstep serve`, in pieces.
#include "fuzz.h"
#include "serve/http_parser.h"
#include "serve/request_lines.h"

FUZZ(bytes) {
  lockstep::HttpParser parser({.body_bytes = 4096, .header_bytes = 1024});
  std::string held;
  for (std::size_t at = 0; at < bytes.size(); at += 40) {
    held += bytes.substr(at, 40);
    if (parser.feed(held)) return;
    lockstep::use(parser.take_expectation());
    if (!parser.done()) continue;
    const lockstep::IncomingRequest request = parser.take();
    try {
      lockstep::use(lockstep::read_request_lines(request, {}));
    } catch (const lockstep::RefusedLines&) {
    }
  }
}

// The bodies of /translate: lines of text, or JSON Lines, an object a line; and the answers to them
// (docs/serving.md has both formats).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/decoding_queue.h"
#include "serve/http_message.h"

namespace lockstep {

enum class LineFormat { kText, kJson };

struct RequestLines {
  LineFormat format = LineFormat::kText;
  std::vector<std::string> lines;
  std::vector<nlohmann::ordered_json> ids;  // of kJson, one a line; null: the line had none
};

struct LineLimits {
  int64_t lines = 4096;
  int64_t line_bytes = 2000;  // of the text to translate
};

// Thrown by read_request_lines().
struct RefusedLines {
  HttpResponse response;
};

// Reads the lines of a POST to /translate. Throws RefusedLines: 415 for another content type, 413
// for more or longer lines than the limits, 400 with the line's number for one that is not UTF-8 or
// not such an object.
RequestLines read_request_lines(const IncomingRequest& request, const LineLimits& limits);

// `n_best` as in `lockstep translate`: 0 is one translation a line, without its number and score.
HttpResponse write_translations(const RequestLines& request,
                                const std::vector<std::vector<TranslatedLine>>& translated,
                                int64_t n_best);

}  // namespace lockstep

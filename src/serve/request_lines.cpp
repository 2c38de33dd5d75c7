#include "serve/request_lines.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/text.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Of a JSON line besides its text, which escapes may make six times as long.
constexpr std::size_t kOtherBytes = 1024;

RefusedLines refused(int status, const std::string& text, std::size_t line) {
  return {error_response(status, fmt::format("line {}: {}", line, text), line)};
}

LineFormat format_of(const IncomingRequest& request) {
  const std::string& type = request.content_type;
  if (type.empty() || type == "text/plain") return LineFormat::kText;
  for (const char* json : {"application/json", "application/x-ndjson", "application/jsonl",
                           "application/jsonlines", "application/x-jsonlines"}) {
    if (type == json) return LineFormat::kJson;
  }
  throw RefusedLines{
      error_response(415, fmt::format("Content-Type {}: expected text/plain (a sentence a line) or "
                                      "application/json ({{\"text\": ...}} a line)",
                                      type))};
}

void check_length(std::size_t bytes, const LineLimits& limits, std::size_t number) {
  if (bytes <= static_cast<std::size_t>(limits.line_bytes)) return;
  throw refused(
      413,
      fmt::format("{} bytes, expected at most {} (--max-line)",
                  with_commas(static_cast<int64_t>(bytes)), with_commas(limits.line_bytes)),
      number);
}

// Takes the text and the id of one JSON line.
void read_object(std::string_view line, const LineLimits& limits, RequestLines& out) {
  const std::size_t number = out.lines.size() + 1;
  const auto most = static_cast<std::size_t>(limits.line_bytes) * 6 + kOtherBytes;
  if (line.size() > most) {
    throw refused(413, fmt::format("{} bytes, expected at most {}", line.size(), most), number);
  }
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::exception& error) {
    throw refused(400, fmt::format("not JSON: {}", error.what()), number);
  }
  if (!object.is_object()) {
    throw refused(400, "expected an object, {\"text\": \"...\"}, on each line", number);
  }
  for (const auto& [key, value] : object.items()) {
    if (key == "text" || key == "id") continue;
    throw refused(400,
                  fmt::format("unknown key {}{}; expected text and, if you like, id", key,
                              did_you_mean(key, {"text", "id"})),
                  number);
  }
  const auto text = object.find("text");
  if (text == object.end() || !text->is_string()) {
    throw refused(400, "expected a string as text", number);
  }
  out.lines.push_back(text->get<std::string>());
  check_length(out.lines.back().size(), limits, number);
  const auto id = object.find("id");
  out.ids.push_back(id == object.end() ? Json(nullptr) : std::move(*id));
}

void write_json(const Json& id, const std::vector<TranslatedLine>& translated, int64_t n_best,
                std::string& out) {
  Json line = Json::object();
  if (!id.is_null()) line["id"] = id;
  if (n_best == 0) {
    line["translation"] = translated.front().text;
    line["score"] = translated.front().score;
  } else {
    line["translations"] = Json::array();
    for (const TranslatedLine& one : translated) {
      line["translations"].push_back({{"translation", one.text}, {"score", one.score}});
    }
  }
  // A model may cut a character in two: U+FFFD stands for what is no UTF-8.
  out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

RequestLines read_request_lines(const IncomingRequest& request, const LineLimits& limits) {
  RequestLines out{.format = format_of(request)};
  std::string_view rest = request.body;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t number = out.lines.size() + 1;
    if (number > static_cast<std::size_t>(limits.lines)) {
      throw refused(
          413,
          fmt::format("expected at most {} lines a request (--queue)", with_commas(limits.lines)),
          number);
    }
    if (auto at = invalid_utf8_at(line)) {
      throw refused(400,
                    fmt::format("byte {}, 0x{:02x}, is not valid UTF-8", *at + 1,
                                static_cast<unsigned char>(line[*at])),
                    number);
    }
    if (out.format == LineFormat::kJson) {
      read_object(line, limits, out);
    } else {
      check_length(line.size(), limits, number);
      out.lines.emplace_back(line);
    }
  }
  return out;
}

HttpResponse write_translations(const RequestLines& request,
                                const std::vector<std::vector<TranslatedLine>>& translated,
                                int64_t n_best) {
  HttpResponse out;
  const bool json = request.format == LineFormat::kJson;
  out.content_type = json ? "application/x-ndjson" : "text/plain; charset=utf-8";
  for (std::size_t i = 0; i < translated.size(); ++i) {
    if (json) {
      write_json(request.ids[i], translated[i], n_best, out.body);
    } else if (n_best == 0) {
      out.body += translated[i].front().text + "\n";
    } else {
      for (const TranslatedLine& one : translated[i]) {
        out.body += fmt::format("{} ||| {} ||| {:.6f}\n", i, one.text, one.score);
      }
    }
  }
  return out;
}

}  // namespace lockstep

#include "formats/span_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSpanVersion = 1;
constexpr std::size_t kSpanNumbers = 6;  // row, name, step, begin, length, bytes
constexpr double kNanoseconds = 1e9;

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t nanoseconds(double seconds) { return std::llround(seconds * kNanoseconds); }

// The spans' begins are stored relative to the rank's first one: whole nanoseconds are short and
// exact.
void append_rank(const RankSpans& rank, std::string& out) {
  double origin = rank.spans.empty() ? 0 : std::numeric_limits<double>::max();
  for (const Span& span : rank.spans) origin = std::min(origin, span.begin);
  auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"rank": {}, "host": {}, "process": {}, "clock_offset_seconds": {:.9f}, )",
                 rank.rank, quoted(rank.host), rank.process, rank.clock_offset);
  fmt::format_to(to, R"("clock_uncertainty_seconds": {:.9f}, "begin": {:.9f},)",
                 rank.clock_uncertainty, origin);
  out += "\n \"names\": [";
  for (std::size_t i = 0; i < rank.names.size(); ++i) {
    fmt::format_to(to, "{}{}", i == 0 ? "" : ", ", quoted(rank.names[i]));
  }
  out += "],\n \"spans\": [";
  for (std::size_t i = 0; i < rank.spans.size(); ++i) {
    const Span& s = rank.spans[i];
    fmt::format_to(to, "{}\n  [{},{},{},{},{},{}]", i == 0 ? "" : ",", static_cast<int>(s.row),
                   s.name, s.step, nanoseconds(s.begin - origin), nanoseconds(s.length), s.bytes);
  }
  out += "]}";
}

// Reads the JSON; errors give the place of the mistake.
class SpanReader {
 public:
  SpanReader(const fs::path& path, const Json& root) : path_(path), root_(root) {}

  SpanFile content() const {
    if (!root_.is_object()) fail("", "expected an object");
    const auto version = whole(root_, "version", "");
    if (version != kSpanVersion) {
      throw DataError("{}: spans of version {}, this program reads version {}", path_.string(),
                      version, kSpanVersion);
    }
    SpanFile out;
    out.first_step = whole(root_, "first_step", "");
    out.last_step = whole(root_, "last_step", "");
    const Json& ranks = array(root_, "ranks", "");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      out.ranks.push_back(rank(ranks[r], fmt::format("ranks[{}]", r)));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& where, std::string_view what) const {
    throw DataError("{}: {}{}{}", path_.string(), where, where.empty() ? "" : ": ", what);
  }
  const Json& member(const Json& from, const char* key, const std::string& where) const {
    auto at = from.find(key);
    if (at == from.end()) fail(where, fmt::format("has no \"{}\"", key));
    return *at;
  }
  int64_t whole(const Json& from, const char* key, const std::string& where) const {
    const Json& value = member(from, key, where);
    if (!value.is_number_integer()) fail(where, fmt::format("{}: expected a whole number", key));
    return value.get<int64_t>();
  }
  double number(const Json& from, const char* key, const std::string& where) const {
    const Json& value = member(from, key, where);
    if (!value.is_number()) fail(where, fmt::format("{}: expected a number", key));
    return value.get<double>();
  }
  std::string text(const Json& from, const char* key, const std::string& where) const {
    const Json& value = member(from, key, where);
    if (!value.is_string()) fail(where, fmt::format("{}: expected a text", key));
    return value.get<std::string>();
  }
  const Json& array(const Json& from, const char* key, const std::string& where) const {
    const Json& value = member(from, key, where);
    if (!value.is_array()) fail(where, fmt::format("{}: expected a list", key));
    return value;
  }

  RankSpans rank(const Json& from, const std::string& where) const {
    if (!from.is_object()) fail(where, "expected an object");
    RankSpans out;
    out.rank = static_cast<int>(whole(from, "rank", where));
    out.host = text(from, "host", where);
    out.process = whole(from, "process", where);
    out.clock_offset = number(from, "clock_offset_seconds", where);
    out.clock_uncertainty = number(from, "clock_uncertainty_seconds", where);
    const double origin = number(from, "begin", where);
    for (const Json& name : array(from, "names", where)) {
      if (!name.is_string()) fail(where, "names: expected texts");
      out.names.push_back(name.get<std::string>());
    }
    const Json& spans = array(from, "spans", where);
    out.spans.reserve(spans.size());
    for (std::size_t i = 0; i < spans.size(); ++i) {
      out.spans.push_back(span(spans[i], origin, out.names.size(),
                               [&] { return fmt::format("{}.spans[{}]", where, i); }));
    }
    std::stable_sort(out.spans.begin(), out.spans.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
    return out;
  }

  template <typename Where>
  Span span(const Json& from, double origin, std::size_t names, const Where& where) const {
    bool right = from.is_array() && from.size() == kSpanNumbers;
    for (std::size_t i = 0; right && i < kSpanNumbers; ++i) right = from[i].is_number_integer();
    if (!right) fail(where(), fmt::format("expected {} whole numbers", kSpanNumbers));
    const auto at = [&](std::size_t i) { return from[i].template get<int64_t>(); };
    if (at(0) < 0 || at(0) > static_cast<int64_t>(SpanRow::kBackground)) {
      fail(where(), fmt::format("row {} is not known", at(0)));
    }
    if (at(1) < 0 || std::cmp_greater_equal(at(1), names)) {
      fail(where(), fmt::format("name {} of {}", at(1), names));
    }
    if (at(4) < 0) fail(where(), "lasts a negative time");
    Span out;
    out.row = static_cast<SpanRow>(at(0));
    out.name = static_cast<int32_t>(at(1));
    out.step = at(2);
    out.begin = origin + static_cast<double>(at(3)) / kNanoseconds;
    out.length = static_cast<double>(at(4)) / kNanoseconds;
    out.bytes = at(5);
    return out;
  }

  const fs::path& path_;
  const Json& root_;
};

// Returns the A of "steps_A-B.json".
std::optional<int64_t> first_step_of(const fs::path& file) {
  constexpr std::string_view kBefore = "steps_", kAfter = ".json";
  const std::string name = file.filename().string();
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return std::nullopt;
  const char* end = name.data() + name.size() - kAfter.size();
  int64_t first = 0, last = 0;
  auto [dash, wrong] = std::from_chars(name.data() + kBefore.size(), end, first);
  if (wrong != std::errc{} || dash == end || *dash != '-') return std::nullopt;
  auto [stop, also_wrong] = std::from_chars(dash + 1, end, last);
  if (also_wrong != std::errc{} || stop != end) return std::nullopt;
  return first;
}

}  // namespace

void write_span_file(const fs::path& path, const SpanFile& content) {
  const fs::path folder = path.parent_path();
  std::error_code failed;
  if (!folder.empty()) fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
  std::string out = fmt::format(R"({{"version": {}, "first_step": {}, "last_step": {},)",
                                kSpanVersion, content.first_step, content.last_step);
  out += "\n\"ranks\": [";
  for (std::size_t r = 0; r < content.ranks.size(); ++r) {
    out += r == 0 ? "\n" : ",\n";
    append_rank(content.ranks[r], out);
  }
  out += "]}\n";
  write_file(path, out);
}

SpanFile read_span_file(const fs::path& path) {
  Json root;
  try {
    root = Json::parse(read_file(path));
  } catch (const Json::exception& wrong) {
    throw DataError("{}: not JSON: {}", path.string(), wrong.what());
  }
  return SpanReader(path, root).content();
}

std::vector<fs::path> span_files(const fs::path& run) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "trace", absent)) {
    if (auto first = first_step_of(entry.path())) found.emplace_back(*first, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> out;
  for (auto& [first, path] : found) out.push_back(std::move(path));
  return out;
}

}  // namespace lockstep

#include "launch/fetch/run_listing.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace lockstep {

namespace {

// Takes "123 " from the front of a line; returns false when there is no such number.
bool take_number(std::string_view& line, int64_t& out) {
  auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), out);
  const auto size = static_cast<std::size_t>(end - line.data());
  if (failed != std::errc() || out < 0 || size >= line.size() || line[size] != ' ') return false;
  line.remove_prefix(size + 1);
  return true;
}

// "+0130" -> 5400.
double seconds_of_zone(std::string_view text) {
  int digits = 0;
  if (text.size() != 5) return 0;
  std::from_chars(text.data() + 1, text.data() + 5, digits);
  const int hours = digits / 100, minutes = digits % 100;
  const double seconds = 3600.0 * hours + 60.0 * minutes;
  return text[0] == '-' ? -seconds : seconds;
}

}  // namespace

bool stays_below(std::string_view path) {
  constexpr std::size_t kLongest = 1024;
  if (path.empty() || path.size() > kLongest) return false;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (std::any_of(path.begin(), path.end(), is_control)) return false;
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == ".." || part == ".fetch") return false;
  }
  return true;
}

RunListing read_run_listing(std::string_view text) {
  RunListing out;
  constexpr std::string_view kFile = "file ", kZone = "zone ", kHere = "./";
  for (const std::string& whole : split(text, '\n')) {
    std::string_view line = whole;
    if (line.starts_with(kZone)) {
      out.exists = true;
      out.zone_seconds = seconds_of_zone(line.substr(kZone.size()));
    }
    if (!line.starts_with(kFile)) continue;
    line.remove_prefix(kFile.size());
    FileFacts facts;
    const bool numbers = take_number(line, facts.bytes) && take_number(line, facts.inode) &&
                         take_number(line, facts.changed);
    if (!numbers || !line.starts_with(kHere)) continue;
    line.remove_prefix(kHere.size());
    if (stays_below(line)) out.files[std::string(line)] = facts;
  }
  return out;
}

}  // namespace lockstep

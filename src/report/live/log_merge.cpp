#include "report/live/log_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fstream>
#include <optional>

#include "base/text.h"

namespace lockstep {
namespace {

// Parses "2026-11-21 21:30:05.123 text", as the log writes it (local time), to seconds since 1970.
std::optional<double> time_of(const std::string& line) {
  std::tm parts{};
  const char* rest = strptime(line.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (rest == nullptr || *rest != '.') return {};
  parts.tm_isdst = -1;
  int millis = 0;
  std::from_chars(rest + 1, line.data() + line.size(), millis);
  return static_cast<double>(std::mktime(&parts)) + millis / 1000.0;
}

// Returns 3 for logs/rank03.log and logs/rank03.error.
std::optional<int> rank_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with("rank") || (path.extension() != ".log" && path.extension() != ".error")) {
    return {};
  }
  int rank = 0;
  constexpr std::size_t kHead = 4;
  const std::string stem = path.stem().string();
  auto [end, failed] = std::from_chars(stem.data() + kHead, stem.data() + stem.size(), rank);
  if (failed != std::errc() || end != stem.data() + stem.size()) return {};
  return rank;
}

// Returns where the last `lines` lines of a text begin.
std::size_t tail_of(const std::string& text, std::size_t lines) {
  std::size_t at = text.size();
  for (std::size_t seen = 0; at > 0; --at) {
    if (text[at - 1] == '\n' && seen++ == lines) break;
  }
  return at;
}

}  // namespace

LogMerge::LogMerge(fs::path logs, RankFilter ranks, std::size_t lines)
    : logs_(std::move(logs)), ranks_(std::move(ranks)), lines_(lines) {}

void LogMerge::read_new(const fs::path& path, int rank, std::vector<Line>& out) {
  File& file = files_[path];
  std::error_code failed;
  std::uintmax_t size = fs::file_size(path, failed);
  if (failed || size == file.offset) return;
  if (size < file.offset) file = {};  // the file was rewritten
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(file.offset));
  std::string text(size - file.offset, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  file.offset += text.size();
  if (!file.begun) text.erase(0, tail_of(text, lines_));
  file.begun = true;
  text = file.rest + text;
  double time = 0;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string line = text.substr(at, end - at);
    if (auto found = time_of(line)) time = *found - sources_[rank].clock_offset;
    out.push_back({time, rank, std::move(line)});
  }
  file.rest = text.substr(at);
}

std::string LogMerge::news() {
  std::vector<Line> lines;
  std::vector<fs::path> paths;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(logs_, failed)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.extension() == ".error", a) < std::pair(b.extension() == ".error", b);
  });
  double latest = 0;
  for (const fs::path& path : paths) {
    std::optional<int> rank = rank_of(path);
    if (!rank || !ranks_.has(*rank)) continue;
    std::size_t before = lines.size();
    read_new(path, *rank, lines);
    for (std::size_t i = before; i < lines.size(); ++i) {
      // Errors have no times, and come after all that led to them.
      if (lines[i].time == 0 && path.extension() == ".error") lines[i].time = latest;
      latest = std::max(latest, lines[i].time);
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.time < b.time; });
  std::string out;
  for (const Line& line : lines) {
    const std::string& host = sources_[line.rank].host;
    out += fmt::format("{}:{} {}\n", host.empty() ? "rank" : host, line.rank, line.text);
  }
  return out;
}

}  // namespace lockstep

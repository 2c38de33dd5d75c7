#include "launch/fetch/run_join.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/text.h"

namespace lockstep {

namespace {

struct TimedText {
  double time = 0;
  std::string_view text;
};
using TimedTexts = std::vector<TimedText>;

// Orders by time. What one source has stays in its order, whatever its times say.
template <typename Timed, typename Time>
std::vector<Timed> in_order(const std::vector<std::vector<Timed>>& sources, Time Timed::*time) {
  std::vector<Timed> out;
  for (const std::vector<Timed>& source : sources) {
    Time newest{};
    for (Timed one : source) {
      one.*time = newest = std::max(newest, one.*time);
      out.push_back(std::move(one));
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [&](const Timed& a, const Timed& b) { return a.*time < b.*time; });
  return out;
}

JoinedText texts_of(const TimedTexts& timed) {
  JoinedText out;
  for (const TimedText& one : timed) out.push_back(one.text);
  return out;
}

// Calls `visit` with each whole line, its end included.
template <typename Visit>
void for_each_whole_line(std::string_view text, const Visit& visit) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
    visit(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
}

// Makes the text that ends where `line` begins as long as with `line`.
void extend(TimedText& text, std::string_view line) {
  text.text = {text.text.data(), text.text.size() + line.size()};
}

double time_in(std::string_view json_line) {
  const auto json = nlohmann::json::parse(json_line, nullptr, false);
  if (!json.is_object()) return 0;
  auto time = json.find("time");
  return time != json.end() && time->is_number() ? time->get<double>() : 0;
}

// Joins by time, without what an earlier source has as well.
JoinedText join_once(std::vector<TimedTexts> sources) {
  std::set<std::string_view> before;
  for (TimedTexts& source : sources) {
    std::erase_if(source, [&](const TimedText& one) { return before.contains(one.text); });
    for (const TimedText& one : source) before.insert(one.text);
  }
  return texts_of(in_order(sources, &TimedText::time));
}

bool begins_attempt(std::string_view line) {
  return line.starts_with(R"({"event":"start")") || line.starts_with(R"({"event":"resume")");
}

TimedTexts attempts_in(std::string_view metrics) {
  TimedTexts out;
  for_each_whole_line(metrics, [&](std::string_view line) {
    if (begins_attempt(line) || out.empty()) {
      out.push_back({time_in(line), line});
    } else {
      extend(out.back(), line);
    }
  });
  return out;
}

// Parses "2026-11-21 21:30:05.123 ..." to Unix seconds.
std::optional<double> time_of_log_line(std::string_view line, double zone_seconds) {
  constexpr std::size_t kStamp = 23;
  if (line.size() < kStamp) return {};
  const std::string text(line.substr(0, kStamp));
  std::tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  if (rest == nullptr || *rest != '.') return {};
  int millis = 0;
  std::from_chars(rest + 1, text.data() + text.size(), millis);
  return static_cast<double>(::timegm(&parts)) - zone_seconds + millis / 1000.0;
}

TimedTexts log_lines(const JoinSource& source) {
  TimedTexts out;
  for_each_whole_line(source.text, [&](std::string_view line) {
    const std::optional<double> time = time_of_log_line(line, source.zone_seconds);
    if (time || out.empty()) {
      out.push_back({time.value_or(0), line});
    } else {
      extend(out.back(), line);
    }
  });
  return out;
}

// "3,1200,..." -> a number that orders by epoch, then by step.
double place_of_epoch(std::string_view line) {
  constexpr double kMostSteps = 1e12;
  const std::vector<std::string> fields = split(line, ',');
  double place = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, fields.size()); ++i) {
    double value = 0;
    std::from_chars(fields[i].data(), fields[i].data() + fields[i].size(), value);
    place += i == 0 ? value * kMostSteps : value;
  }
  return place;
}

}  // namespace

JoinedText join_metrics(const std::vector<JoinSource>& sources) {
  std::vector<TimedTexts> attempts;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> places;  // by the first line
  for (const JoinSource& source : sources) {
    TimedTexts own;
    for (TimedText attempt : attempts_in(source.text)) {
      const std::string_view first = attempt.text.substr(0, attempt.text.find('\n'));
      auto [before, is_new] = places.try_emplace(first, attempts.size(), own.size());
      if (is_new) {
        own.push_back(attempt);
        continue;
      }
      const auto [from, at] = before->second;
      TimedText& longest = from == attempts.size() ? own[at] : attempts[from][at];
      if (attempt.text.size() > longest.text.size()) longest = attempt;
    }
    attempts.push_back(std::move(own));
  }
  return texts_of(in_order(attempts, &TimedText::time));
}

JoinedText join_launch_events(const std::vector<JoinSource>& sources) {
  std::vector<TimedTexts> lines;
  for (const JoinSource& source : sources) {
    lines.emplace_back();
    for_each_whole_line(source.text, [&](std::string_view line) {
      lines.back().push_back({time_in(line), line});
    });
  }
  return join_once(std::move(lines));
}

JoinedText join_logs(const std::vector<JoinSource>& sources) {
  std::vector<TimedTexts> lines;
  for (const JoinSource& source : sources) lines.push_back(log_lines(source));
  return join_once(std::move(lines));
}

JoinedText join_epochs(const std::vector<JoinSource>& sources) {
  JoinedText header;
  std::vector<TimedTexts> lines;
  for (const JoinSource& source : sources) {
    TimedTexts own;
    bool first = true;
    for_each_whole_line(source.text, [&](std::string_view line) {
      if (!first) own.push_back({place_of_epoch(line), line});
      if (first && header.empty()) header.push_back(line);
      first = false;
    });
    lines.push_back(std::move(own));
  }
  JoinedText out = texts_of(in_order(lines, &TimedText::time));
  out.insert(out.begin(), header.begin(), header.end());
  return out;
}

double newest_attempt(std::string_view metrics) {
  double out = 0;
  for (const TimedText& attempt : attempts_in(metrics)) out = std::max(out, attempt.time);
  return out;
}

std::vector<AttemptFile> order_attempts(const std::vector<std::vector<AttemptFile>>& sources) {
  std::vector<AttemptFile> out;
  for (AttemptFile& file : in_order(sources, &AttemptFile::began)) {
    const bool again = !out.empty() && out.back().source != file.source && file.began > 0 &&
                       out.back().began == file.began;
    if (!again) out.push_back(std::move(file));
  }
  return out;
}

}  // namespace lockstep

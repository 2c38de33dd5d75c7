// Expands Slurm's two compressed lists: host names (scontrol's hostlist form) and tasks per node.
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "dist/rank/launch_environment.h"

namespace lockstep {

namespace {

constexpr int kMostHosts = 100000;  // a typing error must not fill the memory

[[noreturn]] void bad_list(const std::string& variable, const std::string& list,
                           const char* expected) {
  throw ConfigError("{}={}: expected {}", variable, list, expected);
}

std::optional<int> to_count(std::string_view text) {
  int value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Splits at commas outside brackets: "a[1,2],b" -> "a[1,2]" "b".
std::optional<std::vector<std::string>> split_outside_brackets(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : list) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (depth != 0) return std::nullopt;
  return parts;
}

// "08-10" -> "08" "09" "10"; "7" -> "7". Returns nothing for a bad range.
std::optional<std::vector<std::string>> expand_range(const std::string& range) {
  std::vector<std::string> ends = split(range, '-');
  std::optional<int> first = to_count(ends.front());
  std::optional<int> last = to_count(ends.back());
  if (ends.size() > 2 || !first || !last || *last < *first || *last - *first > kMostHosts) {
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (int i = *first; i <= *last; ++i) out.push_back(fmt::format("{:0{}}", i, ends[0].size()));
  return out;
}

// Expands one name with any number of bracket groups: "rack[1-2]n[1-2]" is four hosts.
std::optional<std::vector<std::string>> expand_name(const std::string& name) {
  std::size_t open = name.find('[');
  if (open == std::string::npos) return std::vector<std::string>{name};
  std::size_t close = name.find(']', open);
  std::optional<std::vector<std::string>> tails = expand_name(name.substr(close + 1));
  if (!tails) return std::nullopt;
  std::vector<std::string> out;
  for (const std::string& range : split(name.substr(open + 1, close - open - 1), ',')) {
    std::optional<std::vector<std::string>> numbers = expand_range(range);
    if (!numbers || out.size() + numbers->size() * tails->size() > kMostHosts) return std::nullopt;
    for (const std::string& number : *numbers) {
      for (const std::string& tail : *tails) {
        out.push_back(name.substr(0, open) + number + tail);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> expand_slurm_hosts(const std::string& list, const std::string& variable) {
  static const char* const kExpected = "host names such as gnode[10,20-21],login";
  std::optional<std::vector<std::string>> parts = split_outside_brackets(list);
  if (!parts) bad_list(variable, list, kExpected);
  std::vector<std::string> hosts;
  for (const std::string& part : *parts) {
    std::optional<std::vector<std::string>> names = expand_name(part);
    if (part.empty() || !names) bad_list(variable, list, kExpected);
    hosts.insert(hosts.end(), names->begin(), names->end());
  }
  return hosts;
}

std::vector<int> expand_slurm_tasks(const std::string& list, const std::string& variable) {
  static const char* const kExpected = "tasks of each host such as 2(x3),1";
  std::vector<int> tasks;
  for (const std::string& part : split(list, ',')) {
    std::size_t open = part.find("(x");
    bool repeated = open != std::string::npos;
    if (repeated && part.back() != ')') bad_list(variable, list, kExpected);
    std::optional<int> count = to_count(part.substr(0, open));
    std::optional<int> hosts =
        repeated ? to_count(part.substr(open + 2, part.size() - open - 3)) : 1;
    if (!count || !hosts || *count < 1 || *hosts < 1 || *hosts > kMostHosts) {
      bad_list(variable, list, kExpected);
    }
    tasks.insert(tasks.end(), *hosts, *count);
  }
  return tasks;
}

}  // namespace lockstep

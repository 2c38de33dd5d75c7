#include "train/parts/agreement.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

// Returns the first line in which the texts differ, as each text has it.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::vector<std::string> left = split(a, '\n'), right = split(b, '\n');
  std::size_t i = 0;
  while (i < left.size() && i < right.size() && left[i] == right[i]) ++i;
  auto line = [&](const std::vector<std::string>& lines) {
    return i < lines.size() ? std::string(trim(lines[i])) : "nothing";
  };
  return {line(left), line(right)};
}

}  // namespace

std::string rank_and_host(const World& world) {
  const LaunchEnvironment& environment = world.environment();
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return fmt::format("rank {} on {}", world.rank(),
                     environment.host.empty() ? std::string(name) : environment.host);
}

void together(World& world, const std::function<void()>& work) {
  std::optional<Error> mine;
  try {
    work();
  } catch (const Error& error) {
    mine = error;
  }
  std::string said;
  if (mine) said = fmt::format("{}\n{}: {}", mine->exit_code(), rank_and_host(world), mine->what());
  for (const std::string& text : world.all_gather_strings(said)) {
    if (text.empty()) continue;
    if (mine) throw *mine;
    std::size_t line_end = text.find('\n');
    throw Error(std::stoi(text.substr(0, line_end)), text.substr(line_end + 1));
  }
}

void check_same_text(World& world, const std::string& what, const std::string& text) {
  if (world.size() == 1) return;
  std::vector<std::string> names = world.all_gather_strings(rank_and_host(world));
  std::vector<std::string> texts = world.all_gather_strings(text);
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    auto [first, other] = first_difference(texts[0], texts[rank]);
    ConfigError error("{} of {} is not that of {}", what, names[rank], names[0]);
    error.set_cause(fmt::format("{} has: {}; {} has: {}", names[rank], other, names[0], first));
    error.set_advice("bring the same files to all hosts, or share one folder");
    throw error;
  }
}

}  // namespace lockstep

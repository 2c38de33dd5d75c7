#include "dist/collectives/machines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

// What every rank announces about itself, and the first rank of a machine about its memory.
struct Announcement {
  pid_t process = 0;
  int descriptor = -1;  // of the memory, if this rank made it
  std::string failure;

  std::string text() const { return fmt::format("{} {} {}", process, descriptor, failure); }
  static Announcement from(const std::string& text) {
    Announcement out;
    std::size_t first = text.find(' '), second = text.find(' ', first + 1);
    out.process = std::stoi(text.substr(0, first));
    out.descriptor = std::stoi(text.substr(first + 1, second - first - 1));
    out.failure = text.substr(second + 1);
    return out;
  }
};

// Runs `work`; returns the text of the error that it threw, or nothing.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    std::vector<std::string> lines;
    for (const std::string& line : split(error.describe(), '\n')) lines.emplace_back(trim(line));
    return join(lines, "; ");
  }
}

}  // namespace

bool Machines::shared() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const auto& m) { return m.size() > 1; });
}

Machines group_by_machine(const std::vector<std::string>& keys, int rank) {
  Machines out;
  std::vector<std::string> seen;
  for (std::size_t r = 0; r < keys.size(); ++r) {
    auto machine = std::find(seen.begin(), seen.end(), keys[r]) - seen.begin();
    if (machine == static_cast<std::ptrdiff_t>(seen.size())) {
      seen.push_back(keys[r]);
      out.ranks.emplace_back();
    }
    out.ranks[machine].push_back(static_cast<int>(r));
    if (static_cast<int>(r) == rank) out.mine = static_cast<int>(machine);
  }
  return out;
}

OpenedGroup open_local_group(const Machines& machines, int rank, const GatherStrings& gather) {
  const std::vector<int>& ranks = machines.neighbours();
  const std::size_t bytes = LocalGroup::bytes_for(ranks.size());
  const bool first = rank == ranks.front(), alone = ranks.size() == 1;
  std::optional<SharedMemory> memory;
  Announcement mine{getpid()};
  if (first && !alone) {
    mine.failure = failure_of([&] { memory.emplace(SharedMemory::create(bytes)); });
    if (memory) mine.descriptor = memory->descriptor();
  }
  std::vector<Announcement> all;
  for (const std::string& text : gather(mine.text())) all.push_back(Announcement::from(text));

  OpenedGroup out;
  LocalGroup::Members members{ranks};
  for (int r : ranks) members.processes.push_back(all[r].process);
  members.me = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const Announcement& maker = all[ranks.front()];
  if (!alone && maker.failure.empty()) {
    mine.failure = failure_of([&] {
      if (!first) {
        memory.emplace(SharedMemory::attach(maker.process, maker.descriptor, bytes));
        memory->close_descriptor();
      }
      out.group = std::make_unique<LocalGroup>(std::move(members), std::move(*memory));
    });
  }
  std::vector<std::string> failures = gather(mine.failure);
  for (std::size_t r = 0; r < failures.size() && out.failure.empty(); ++r) {
    if (!failures[r].empty()) out.failure = fmt::format("rank {}: {}", r, failures[r]);
  }
  if (!out.failure.empty()) out.group.reset();
  if (out.group) out.group->close_door();
  return out;
}

}  // namespace lockstep

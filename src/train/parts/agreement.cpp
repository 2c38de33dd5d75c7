#include "train/parts/agreement.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dist/collectives/cuda.h"

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

// Throws what all ranks have found alike. A rank that left before the others have come to it would
// be the failure that they name instead.
template <typename Found>
[[noreturn]] void throw_alike(World& world, const Found& error) {
  world.say_farewell();
  throw error;
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
    if (mine) throw_alike(world, *mine);
    std::size_t line_end = text.find('\n');
    throw_alike(world, Error(std::stoi(text.substr(0, line_end)), text.substr(line_end + 1)));
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
    throw_alike(world, error);
  }
}

void check_same_device(World& world, torch::Device device) {
  if (world.size() == 1) return;
  const std::vector<std::string> names = world.all_gather_strings(rank_and_host(world));
  const std::vector<std::string> lacks =
      world.all_gather_strings(device.is_cpu() ? why_no_gpu() : "");
  const auto with = std::ranges::find(lacks, "");
  const auto without = std::ranges::find_if_not(lacks, &std::string::empty);
  if (with == lacks.end() || without == lacks.end()) return;
  const auto name = [&](auto rank) {
    return names[static_cast<std::size_t>(rank - lacks.begin())];
  };
  MachineError error("{} has a GPU, {} computes on its CPU", name(with), name(without));
  error.set_cause(*without);
  error.set_advice("put that machine right (lockstep doctor), leave it out, or run.device=cpu");
  throw_alike(world, error);
}

void check_any_ranks(World& world, torch::Device device) {
  const std::string key = "training.reproducible = \"any-ranks\"";
  if (!device.is_cpu()) {
    throw_alike(
        world,
        ConfigError("{}: only on CPUs; products and sums of GPUs have an order of their own", key));
  }
  const auto threads = static_cast<uint64_t>(at::get_num_threads());
  if (!world.all_equal(std::span(&threads, 1)).empty()) {
    ConfigError error("{}: ranks have different numbers of threads, here {}", key, threads);
    error.set_advice("the same OMP_NUM_THREADS for all");
    throw_alike(world, error);
  }
  const std::vector<std::vector<int>>& machines = world.machines();
  for (const std::vector<int>& ranks : machines) {
    const bool even = ranks.size() == machines.front().size();
    if (even && ranks.back() - ranks.front() + 1 == std::ssize(ranks)) continue;
    throw_alike(
        world,
        ConfigError("{}: machines need as many ranks each, with numbers that follow each other",
                    key));
  }
}

}  // namespace lockstep

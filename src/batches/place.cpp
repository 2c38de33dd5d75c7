#include "batches/place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/error.h"
#include "dist/collectives/machines.h"
#include "dist/rank/machine_key.h"
#include "dist/rank/network.h"

namespace lockstep {

std::string place_key(const World& world, const fs::path& folder) {
  const std::string machine = machine_key();
  struct stat info {};
  if (machine.empty() || ::stat(folder.c_str(), &info) != 0) {
    return fmt::format("rank {}", world.rank());
  }
  return fmt::format("{} {}:{}", machine, info.st_dev, info.st_ino);
}

Places find_places(const std::vector<std::string>& keys, int rank) {
  Machines machines = group_by_machine(keys, rank);
  return {std::move(machines.ranks), machines.mine};
}

std::string host_of(const World& world) {
  const std::string& given = world.environment().host;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return given.empty() ? std::string(name) : given;
}

std::string address_of(const World& world) {
  const LaunchEnvironment& environment = world.environment();
  return environment.address.empty() ? local_address_towards(environment.master_address).address
                                     : environment.address;
}

std::vector<std::string> gather_results(World& world, const std::function<std::string()>& work) {
  std::optional<Error> mine;
  std::string said;
  try {
    said = "+" + work();
  } catch (const Error& error) {
    mine = error;
    said = fmt::format("{}\nrank {} on {}: {}", error.exit_code(), world.rank(), host_of(world),
                       error.what());
  }
  std::vector<std::string> all = world.all_gather_strings(said);
  for (std::string& text : all) {
    if (text.starts_with('+')) continue;
    if (mine) throw Error(*mine);
    const std::size_t line_end = text.find('\n');
    throw Error(std::stoi(text.substr(0, line_end)), text.substr(line_end + 1));
  }
  for (std::string& text : all) text.erase(0, 1);
  return all;
}

}  // namespace lockstep

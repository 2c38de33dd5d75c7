#include "commands/hosts/fetch_address.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"
#include "train/mirror/mirror_reading.h"

namespace lockstep {

int fetch_address(AddressFetch wanted) {
  MirroredRun run(wanted.address);
  if (wanted.to.empty()) wanted.to = fs::path(run.address()).filename();
  const RunFolder folder(wanted.to);
  if (fs::exists(folder.config()) && run_identity(folder) != run.identity()) {
    ConfigError error("{}: holds another run than {}", wanted.to.string(), wanted.address);
    error.set_advice("--to DIR");
    throw error;
  }
  fs::create_directories(wanted.to);
  run.fetch_files(wanted.to, MirroredRun::Files::kAll, false);
  std::vector<int64_t> steps;
  if (wanted.checkpoints == "newest") steps = run.newest_and_best();
  if (wanted.checkpoints == "all") steps = run.steps();
  std::vector<std::string> names;
  for (const int64_t step : steps) {
    try {
      names.push_back(run.fetch_checkpoint(wanted.to, step).filename().string());
    } catch (const DataError& error) {
      log_warning("{} is passed over: {}", checkpoint_name(step), error.what());
    }
  }
  if (!steps.empty() && names.empty()) {
    throw DataError("{}: none of its checkpoints arrives whole", run.address());
  }
  if (!names.empty()) fmt::print("checkpoints: {}\n", join(names, ", "));
  fmt::print("{}: from {}; lockstep report {}\n", wanted.to.string(), run.address(),
             wanted.to.string());
  return kExitOk;
}

}  // namespace lockstep

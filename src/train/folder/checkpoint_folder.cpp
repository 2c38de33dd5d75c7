#include "train/folder/checkpoint_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/run_position.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// What the run tells of its steps until a checkpoint must outlive a power failure if that does.
void sync_logs(const fs::path& run) {
  for (const fs::directory_entry& entry : fs::directory_iterator(run)) {
    if (entry.path().extension() == ".jsonl") sync_file(entry.path());
  }
}

// Writes DONE: {"weights.safetensors": {"bytes": n, "sha256": "..."}, ...}; returns the sum of
// bytes.
int64_t write_done(const fs::path& folder, const WrittenFiles& known) {
  Json done;
  int64_t total = 0;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const auto bytes = static_cast<int64_t>(fs::file_size(file));
    const auto found = known.find(name);
    const bool is_known = found != known.end() && found->second.bytes == bytes;
    done[name] = {{"bytes", bytes},
                  {"sha256", is_known ? found->second.sha256 : sha256_of_file(file)}};
    total += bytes;
  }
  write_file(folder / "DONE", done.dump(1) + "\n");
  return total;
}

// Returns the step of a path that ends in "step_1200.part", -1 for other names.
int64_t unfinished_step(const fs::path& path) {
  return path.extension() == kUnfinished ? checkpoint_step(fs::path(path).replace_extension()) : -1;
}

// Returns the folders in `folder` for which `step_of` is a step, the newest first.
std::vector<fs::path> with_steps(const fs::path& folder, int64_t (*step_of)(const fs::path&)) {
  std::vector<fs::path> out;
  if (!fs::exists(folder)) return out;
  std::error_code failed;
  const fs::directory_iterator entries(folder, failed);
  // A run that goes on from a folder that cannot be read must not begin anew.
  if (failed && fs::exists(folder)) {
    throw MachineError("{}: cannot be read: {}", folder.string(), failed.message());
  }
  for (const fs::directory_entry& entry : entries) {
    std::error_code gone;  // the run may remove one meanwhile
    if (entry.is_directory(gone) && step_of(entry.path()) >= 0) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end(),
            [&](const fs::path& a, const fs::path& b) { return step_of(a) > step_of(b); });
  return out;
}

Json read_json(const fs::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const Json::exception& error) {
    throw DataError("{}: not valid JSON: {}", path.string(), error.what());
  }
}

// Renames a finished checkpoint to `target`, at one stroke where the file system can exchange two
// folders. Where it cannot, a crash between the two renames leaves the finished one aside:
// tidy_checkpoints() finds it.
void put_in_place(const fs::path& aside, const fs::path& target) {
  sync_folder(aside);
  if (!fs::exists(target)) {
    fs::rename(aside, target);
  } else if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    remove_checkpoint(aside);  // which was the target
  } else {
    remove_checkpoint(target);
    fs::rename(aside, target);
  }
  sync_folder(target.parent_path());
}

}  // namespace

void tidy_checkpoints(const fs::path& folder) {
  for (const fs::path& part : unfinished_checkpoints(folder)) {
    const fs::path target = fs::path(part).replace_extension();
    std::error_code failed;
    if (fs::exists(target / "DONE") || !checkpoint_damage(part).empty()) continue;
    fs::remove_all(target, failed);  // what is left of one that was being replaced
    fs::rename(part, target, failed);
    if (failed) {
      log_warning("{} is whole, but cannot be renamed: {}", part.string(), failed.message());
    } else {
      log_info("{} was whole but for its name", target.string());
    }
  }
  const std::vector<fs::path> unfinished = unfinished_checkpoints(folder);
  if (unfinished.empty()) return;
  const std::optional<fs::path> newest = newest_complete_checkpoint(folder);
  for (const fs::path& part : unfinished) {
    if (!newest || unfinished_step(part) > checkpoint_step(*newest)) continue;
    log_info("{} was not finished and is removed", part.string());
    remove_checkpoint(part);
  }
}

std::string checkpoint_name(int64_t step) { return fmt::format("step_{}", step); }

int64_t checkpoint_step(const fs::path& checkpoint) {
  std::string name = checkpoint.filename().string();
  bool named = name.starts_with("step_") && name.size() > 5 &&
               name.find_first_not_of("0123456789", 5) == std::string::npos;
  return named ? std::stoll(name.substr(5)) : -1;
}

std::vector<fs::path> all_checkpoints(const fs::path& folder) {
  return with_steps(folder, checkpoint_step);
}

std::vector<fs::path> unfinished_checkpoints(const fs::path& folder) {
  return with_steps(folder, unfinished_step);
}

int64_t write_checkpoint(const fs::path& folder, int64_t step,
                         const std::function<WrittenFiles(const fs::path& aside)>& write) {
  fs::path target = folder / checkpoint_name(step);
  fs::path aside = target;
  aside += kUnfinished;
  try {
    fs::remove_all(aside);
    fs::create_directories(aside);
    const WrittenFiles known = write(aside);
    sync_logs(fs::absolute(folder).parent_path());
    int64_t bytes = write_done(aside, known);
    put_in_place(aside, target);
    return bytes;
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw MachineError("{}: cannot be saved: {}", target.string(), error.what());
  } catch (Error& error) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    error.add_context("saving the checkpoint " + target.string());
    throw;
  }
}

void replace_in_checkpoint(const fs::path& folder, int64_t step, const std::string& name,
                           const std::string& content) {
  const fs::path target = folder / checkpoint_name(step);
  fs::path aside = target;
  aside += kUnfinished;
  try {
    fs::remove_all(aside);
    fs::create_directories(aside);
    Json done = read_json(target / "DONE");
    for (const auto& [file, unused] : done.items()) {
      if (file == name) continue;
      std::error_code refused;  // by a file system without links
      fs::create_hard_link(target / file, aside / file, refused);
      if (refused) fs::copy_file(target / file, aside / file);
    }
    write_file(aside / name, content);
    done[name] = {{"bytes", static_cast<int64_t>(content.size())},
                  {"sha256", sha256_of_file(aside / name)}};
    write_file(aside / "DONE", done.dump(1) + "\n");
    put_in_place(aside, target);
  } catch (const fs::filesystem_error& error) {
    throw MachineError("{}: cannot be renewed: {}", target.string(), error.what());
  }
}

std::string checkpoint_damage(const fs::path& checkpoint, CheckpointCheck check) {
  if (!fs::exists(checkpoint / "DONE")) return "it has no DONE file: it was not finished";
  try {
    Json done = read_json(checkpoint / "DONE");
    for (const auto& [name, expected] : done.items()) {
      fs::path file = checkpoint / name;
      std::error_code failed;  // the run may remove it meanwhile
      const auto bytes = static_cast<int64_t>(fs::file_size(file, failed));
      if (failed == std::errc::no_such_file_or_directory) return name + " is missing";
      if (failed) return name + ": " + failed.message();
      auto expected_bytes = expected.at("bytes").get<int64_t>();
      if (bytes != expected_bytes) {
        return fmt::format("{} has {} bytes, DONE says {}", name, with_commas(bytes),
                           with_commas(expected_bytes));
      }
      if (check == CheckpointCheck::kSizes) continue;
      if (sha256_of_file(file) != expected.at("sha256").get<std::string>()) {
        return name + " has another hash than DONE says: its bytes changed";
      }
    }
  } catch (const Json::exception& error) {
    return std::string("DONE is damaged: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<fs::path> complete_checkpoints(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    std::string damage = checkpoint_damage(checkpoint);
    if (damage.empty()) {
      out.push_back(checkpoint);
    } else {
      log_warning("{} is passed over: {}", checkpoint.string(), damage);
    }
  }
  return out;
}

std::optional<fs::path> newest_complete_checkpoint(const fs::path& folder) {
  std::optional<fs::path> newest;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    std::string damage = checkpoint_damage(checkpoint);
    if (damage.empty()) {
      newest = checkpoint;
      break;
    }
    log_warning("{} is passed over: {}", checkpoint.string(), damage);
  }
  for (const fs::path& part : unfinished_checkpoints(folder)) {
    if (newest && unfinished_step(part) <= checkpoint_step(*newest)) break;
    log_warning("{} is passed over: it was not finished", part.string());
  }
  return newest;
}

fs::path weights_for_use(const fs::path& checkpoint) {
  fs::path average = checkpoint / "average.safetensors";
  return fs::exists(average) ? average : checkpoint / "weights.safetensors";
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code failed;
  // DONE goes first, so that a half-removed checkpoint does not look whole.
  fs::remove(checkpoint / "DONE", failed);
  fs::remove_all(checkpoint, failed);
  if (failed) log_warning("{} cannot be removed: {}", checkpoint.string(), failed.message());
}

void remove_old_checkpoints(const fs::path& folder, int64_t keep, const std::set<int64_t>& best) {
  for (const fs::path& old : old_checkpoints(folder, keep, best)) remove_checkpoint(old);
}

std::vector<fs::path> old_checkpoints(const fs::path& folder, int64_t keep,
                                      const std::set<int64_t>& best) {
  std::vector<fs::path> out;
  int64_t kept = 0;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    if (kept++ < keep || best.contains(checkpoint_step(checkpoint))) continue;
    out.push_back(checkpoint);
  }
  return out;
}

namespace {

Validation validation_of(const fs::path& checkpoint) {
  fs::path state = checkpoint / "state.json";
  try {
    return position_from_json(read_json(state)).validation;
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", state.string(), error.what());
  }
}

// REQUIRES `complete` to have at least one checkpoint, newest first.
std::vector<fs::path> best_of(const std::vector<fs::path>& complete, const std::string& metric) {
  Validation validation = validation_of(complete.front());
  std::vector<std::string> names;
  for (const MetricHistory& history : validation) {
    names.push_back(history.metric);
    if (!metric.empty() && history.metric != metric) continue;
    std::vector<fs::path> out;
    for (const RankedStep& best : history.best) {
      auto found = std::find_if(complete.begin(), complete.end(),
                                [&](const fs::path& c) { return checkpoint_step(c) == best.step; });
      if (found != complete.end()) {
        out.push_back(*found);
      } else {
        log_warning("{}, one of the best by {}, is not there or damaged",
                    checkpoint_name(best.step), history.metric);
      }
    }
    return out;
  }
  if (metric.empty()) return {};  // nothing was evaluated
  throw DataError("{}: \"{}\" was not among evaluation.metrics{} ({})",
                  complete.front().parent_path().string(), metric, did_you_mean(metric, names),
                  join(names, ", "));
}

std::vector<fs::path> at_least_one_checkpoint(const fs::path& folder) {
  std::vector<fs::path> complete = complete_checkpoints(folder);
  if (complete.empty()) throw DataError("{}: no complete checkpoint", folder.string());
  return complete;
}

}  // namespace

std::vector<fs::path> best_checkpoints(const fs::path& folder, const std::string& metric) {
  return best_of(at_least_one_checkpoint(folder), metric);
}

fs::path find_checkpoint(const fs::path& folder, const std::string& which) {
  std::vector<fs::path> complete = at_least_one_checkpoint(folder);
  if (which == "newest") return complete.front();
  if (which == "best" || which.starts_with("best-")) {
    std::vector<fs::path> best = best_of(complete, which == "best" ? "" : which.substr(5));
    return best.empty() ? complete.front() : best.front();
  }
  std::vector<std::string> names;
  for (const fs::path& checkpoint : complete) {
    names.push_back(checkpoint.filename().string());
    if (names.back() == which) return checkpoint;
  }
  throw DataError("{}: no complete checkpoint \"{}\"{} (best, newest, {})", folder.string(), which,
                  did_you_mean(which, names), join(names, ", "));
}

}  // namespace lockstep

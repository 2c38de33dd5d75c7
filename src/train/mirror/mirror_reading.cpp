#include "train/mirror/mirror_reading.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"

namespace lockstep {

MirroredRun::MirroredRun(const std::string& address)
    : address_(parse_store_address(address).text),
      store_(open_store(parse_store_address(address))),
      listing_(list_mirror(*store_)) {
  const bool holds = std::any_of(listing_.files.begin(), listing_.files.end(),
                                 [](const StoredObject& o) { return o.key == "config.toml"; });
  if (holds) return;
  ConfigError error("{}: no run is there (no config.toml)", address_);
  error.set_advice("the address that a run has as checkpoint.mirror");
  throw error;
}

std::string MirroredRun::identity() { return mirror_identity(*store_); }

std::string MirroredRun::config() {
  std::optional<std::string> text = object_text(*store_, "config.toml");
  if (!text) throw ConfigError("{}: no run is there (no config.toml)", address_);
  return *text;
}

void MirroredRun::fetch_files(const fs::path& folder, Files which, bool keep) {
  for (const StoredObject& object : listing_.files) {
    const bool inner = object.key.find('/') != std::string::npos;
    const bool record = inner || object.key.ends_with(".jsonl") || object.key.ends_with(".csv");
    if (which == Files::kForUse && record) continue;
    const fs::path file = folder / object.key;
    if (fs::exists(file)) {
      if (keep) continue;
      fs::remove(file);
    }
    fetch_object(*store_, {.key = object.key, .file = file, .bytes = object.bytes});
  }
}

fs::path MirroredRun::fetch_checkpoint(const fs::path& folder, int64_t step) {
  const fs::path target = folder / "checkpoints" / checkpoint_name(step);
  const std::string key = mirrored_checkpoint(step);
  const std::optional<std::string> done = object_text(*store_, key + "/DONE");
  if (!done) throw DataError("{}/{}: it is not whole", address_, key);
  if (fs::exists(target / "DONE") && read_file(target / "DONE") == *done &&
      checkpoint_damage(target).empty()) {
    return target;
  }
  fs::path aside = target;
  aside += ".part";
  fs::create_directories(aside);
  const auto files = parse_done(*done, address_ + "/" + key);
  for (const auto& [name, file] : files) {
    log_debug("fetching {}/{}", key, name);
    fetch_object(*store_, {.key = key + "/" + name,
                           .file = aside / name,
                           .bytes = file.bytes,
                           .sha256 = file.sha256});
  }
  for (const auto& entry : fs::directory_iterator(aside)) {
    if (!files.contains(entry.path().filename().string())) fs::remove_all(entry.path());
  }
  write_file(aside / "DONE", *done);
  fs::remove_all(target);
  fs::rename(aside, target);
  sync_folder(target.parent_path());
  return target;
}

std::optional<fs::path> MirroredRun::fetch_newest(const fs::path& folder, int64_t than) {
  for (const int64_t step : steps()) {
    if (step <= than) break;
    try {
      return fetch_checkpoint(folder, step);
    } catch (const DataError& error) {
      log_warning("{}/{} is passed over: {}", address_, checkpoint_name(step), error.what());
      fs::path aside = folder / "checkpoints" / (checkpoint_name(step) + ".part");
      fs::remove_all(aside);
    }
  }
  return std::nullopt;
}

// Returns the text of a checkpoint's state.json, empty where it is not what DONE says.
std::string MirroredRun::state_of(int64_t step) {
  const std::string key = mirrored_checkpoint(step);
  const std::string done = object_text(*store_, key + "/DONE").value_or("{}");
  const std::string state = object_text(*store_, key + "/state.json").value_or("");
  const auto files = parse_done(done, key);
  const auto file = files.find("state.json");
  const bool whole =
      file != files.end() && sha256_hex(std::as_bytes(std::span(state))) == file->second.sha256;
  return whole ? state : "";
}

std::vector<int64_t> MirroredRun::newest_and_best() {
  const std::vector<int64_t> all = steps();
  if (all.empty()) return {};
  const std::set<int64_t> best = best_steps_of_state(state_of(all.front()));
  std::vector<int64_t> out;
  for (const int64_t step : all) {
    if (step == all.front() || best.contains(step)) out.push_back(step);
  }
  return out;
}

fs::path MirroredRun::fetch_chosen(const fs::path& folder, const std::string& which) {
  const std::vector<int64_t> all = steps();
  if (all.empty()) throw DataError("{}: no complete checkpoint is there", address_);
  std::optional<int64_t> wanted;
  if (which == "best" || which.starts_with("best-")) {
    const std::string state = state_of(all.front());
    if (!state.empty()) wanted = best_step_of_state(state, which == "best" ? "" : which.substr(5));
    if (wanted && std::find(all.begin(), all.end(), *wanted) == all.end()) {
      log_warning("{}: {}, the best, is not there any more", address_, checkpoint_name(*wanted));
      wanted.reset();
    }
  } else if (which != "newest") {
    std::vector<std::string> names;
    for (const int64_t step : all) names.push_back(checkpoint_name(step));
    const auto found = std::find(names.begin(), names.end(), which);
    if (found == names.end()) {
      throw DataError("{}: no complete checkpoint \"{}\"{} (best, newest, {})", address_, which,
                      did_you_mean(which, names), join(names, ", "));
    }
    return fetch_checkpoint(folder, all[static_cast<std::size_t>(found - names.begin())]);
  }
  if (wanted) {
    try {
      return fetch_checkpoint(folder, *wanted);
    } catch (const DataError& error) {
      log_warning("{}/{} is passed over: {}", address_, checkpoint_name(*wanted), error.what());
    }
  }
  const std::optional<fs::path> newest = fetch_newest(folder);
  if (!newest) throw DataError("{}: none of its checkpoints arrives whole", address_);
  return *newest;
}

}  // namespace lockstep

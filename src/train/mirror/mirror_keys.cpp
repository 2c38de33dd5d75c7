#include "train/mirror/mirror_keys.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "train/folder/checkpoint_folder.h"
#include "train/folder/run_position.h"

namespace lockstep {

namespace {

using MirrorJson = nlohmann::ordered_json;

std::string identity_in(const std::string& text) {
  const auto json = MirrorJson::parse(text, nullptr, false);
  return json.is_object() ? json.value("run", "") : "";
}

std::string new_identity() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", device());
  return out;
}

Validation validation_in(const std::string& state) {
  try {
    return position_from_json(MirrorJson::parse(state)).validation;
  } catch (const MirrorJson::exception&) {
    return {};
  }
}

}  // namespace

std::string mirrored_checkpoint(int64_t step) { return "checkpoints/" + checkpoint_name(step); }

bool MirrorListing::is_complete(int64_t step) const {
  const auto found = checkpoints.find(step);
  return found != checkpoints.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const StoredObject& o) { return o.key.ends_with("/DONE"); });
}

std::vector<int64_t> MirrorListing::complete_steps() const {
  std::vector<int64_t> out;
  for (auto at = checkpoints.rbegin(); at != checkpoints.rend(); ++at) {
    if (is_complete(at->first)) out.push_back(at->first);
  }
  return out;
}

MirrorListing list_mirror(ObjectStore& store) {
  MirrorListing out;
  for (StoredObject& object : store.list("")) {
    const fs::path key = object.key;
    // A key is a path below the run folder, never one that leads out of it.
    if (key.is_absolute() || std::find(key.begin(), key.end(), "..") != key.end()) continue;
    if (object.key.starts_with("checkpoints/")) {
      const int64_t step = checkpoint_step(key.parent_path());
      if (step >= 0) out.checkpoints[step].push_back(std::move(object));
    } else if (object.key == kRunIdentity) {
      out.has_identity = true;
      out.files.push_back(std::move(object));
    } else if (!key.filename().string().starts_with('.') && key.extension() != ".part") {
      out.files.push_back(std::move(object));
    }
  }
  return out;
}

std::map<std::string, MirroredFile> parse_done(const std::string& text, const std::string& place) {
  std::map<std::string, MirroredFile> out;
  try {
    const MirrorJson json = MirrorJson::parse(text);
    for (const auto& [name, file] : json.items()) {
      if (name.find('/') != std::string::npos || name.starts_with('.')) continue;
      out[name] = {.bytes = file.at("bytes"), .sha256 = file.at("sha256")};
    }
  } catch (const MirrorJson::exception& error) {
    throw DataError("{}: DONE is damaged: {}", place, error.what());
  }
  return out;
}

std::set<int64_t> best_steps_of_state(const std::string& state) {
  return best_steps(validation_in(state));
}

std::optional<int64_t> best_step_of_state(const std::string& state, const std::string& metric) {
  std::vector<std::string> names;
  for (const MetricHistory& history : validation_in(state)) {
    names.push_back(history.metric);
    if (!metric.empty() && history.metric != metric) continue;
    if (history.best.empty()) return std::nullopt;
    return history.best.front().step;
  }
  if (metric.empty()) return std::nullopt;
  throw DataError("\"{}\" was not among evaluation.metrics{} ({})", metric,
                  did_you_mean(metric, names), join(names, ", "));
}

std::string run_identity(const RunFolder& folder) {
  const fs::path file = folder.path() / kRunIdentity;
  return fs::exists(file) ? identity_in(read_file(file)) : "";
}

std::string mirror_identity(ObjectStore& store) {
  const std::optional<std::string> text = object_text(store, kRunIdentity);
  return text ? identity_in(*text) : "";
}

void claim_mirror(ObjectStore& store, const std::string& address, const RunFolder& folder) {
  std::string mine = run_identity(folder);
  const std::string there = mirror_identity(store);
  if (!there.empty() && there != mine && !list_mirror(store).complete_steps().empty()) {
    ConfigError error("checkpoint.mirror: {} holds another run than {}", address,
                      folder.path().string());
    error.set_advice(fmt::format(
        "train --resume={} to go on with that one, or another address for this run", address));
    throw error;
  }
  const fs::path file = folder.path() / kRunIdentity;
  if (mine.empty()) {
    mine = new_identity();
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    MirrorJson json = {{"format", 1}, {"run", mine}, {"made", unix_seconds()}, {"host", host}};
    if (const std::string job = folder.job_id(); !job.empty()) json["job"] = job;
    write_file(file, json.dump(1) + "\n");
  }
  if (there != mine) put_text(store, kRunIdentity, read_file(file));
}

}  // namespace lockstep

#include "launch/fetch/held_checkpoints.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "launch/fetch/run_listing.h"

namespace lockstep {

namespace {

constexpr std::string_view kCheckpoint = "checkpoints/step_";

template <typename Read>
void read_checkpoint_json(const std::string& text, const char* name, const Read& read) {
  try {
    read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{} is damaged: {}", name, error.what());
  }
}

}  // namespace

std::string HeldCheckpoint::name() const { return fmt::format("{}{}", kCheckpoint, step); }

std::optional<int64_t> step_in_path(const std::string& path) {
  if (!path.starts_with(kCheckpoint)) return {};
  int64_t step = -1;
  const char* end_of_path = path.data() + path.size();
  auto [end, failed] = std::from_chars(path.data() + kCheckpoint.size(), end_of_path, step);
  const bool whole = failed == std::errc() && step >= 0 && end != end_of_path && *end == '/';
  // "step_01/" is another folder than "step_1/".
  if (!whole || !path.starts_with(fmt::format("{}{}/", kCheckpoint, step))) return {};
  return step;
}

std::vector<DoneFile> read_done(const std::string& text) {
  std::vector<DoneFile> out;
  read_checkpoint_json(text, "DONE", [&](const nlohmann::json& json) {
    for (const auto& [name, file] : json.items()) {
      if (name.find('/') != std::string::npos || name == "DONE" || !stays_below(name)) {
        throw DataError("DONE is damaged: \"{}\" is no name of a file", name);
      }
      out.push_back({name, file.at("sha256"), file.at("bytes")});
    }
  });
  return out;
}

std::set<int64_t> read_best_steps(const std::string& state_json) {
  std::set<int64_t> out;
  read_checkpoint_json(state_json, "state.json", [&](const nlohmann::json& json) {
    for (const nlohmann::json& metric : json.at("validation")) {
      if (!metric.at("best").empty()) out.insert(metric["best"][0].at("step").get<int64_t>());
    }
  });
  return out;
}

std::set<int64_t> choose_steps(const std::vector<HeldCheckpoint>& held, CheckpointChoice choice) {
  std::set<int64_t> all, out;
  for (const HeldCheckpoint& one : held) all.insert(one.step);
  if (choice == CheckpointChoice::kNone || held.empty()) return out;
  if (choice == CheckpointChoice::kAll) return all;
  const auto newest = std::max_element(
      held.begin(), held.end(),
      [](const HeldCheckpoint& a, const HeldCheckpoint& b) { return a.step < b.step; });
  out.insert(newest->step);
  for (int64_t step : newest->best_steps) {
    if (all.contains(step)) out.insert(step);
  }
  return out;
}

}  // namespace lockstep

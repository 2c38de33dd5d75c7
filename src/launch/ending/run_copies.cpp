#include "launch/ending/run_copies.h"

#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

using CopiesJson = nlohmann::ordered_json;

std::string text_digest(const std::string& text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

int64_t step_of_checkpoint(const std::string& name) {
  constexpr std::string_view kStart = "step_";
  int64_t step = -1;
  if (!name.starts_with(kStart)) return -1;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kStart.size(), end, step);
  return read.ec == std::errc() && read.ptr == end ? step : -1;
}

RunCopies look_at_copies(const std::filesystem::path& path) {
  RunCopies out;
  const RunFolder run(path);
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(run.checkpoints(), none)) {
    const std::string name = entry.path().filename().string();
    if (step_of_checkpoint(name) <= step_of_checkpoint(out.newest)) continue;
    if (fs::exists(entry.path() / "DONE", none)) out.newest = name;
  }
  if (!out.newest.empty()) {
    out.digest = text_digest(read_file(run.checkpoints() / out.newest / "DONE"));
  }
  const fs::path mirror = path / "mirror.json";
  if (!fs::exists(mirror, none)) return out;
  const auto json = CopiesJson::parse(read_file(mirror), nullptr, false);
  if (!json.is_object()) return out;
  out.has_mirror = true;
  out.mirrored = json.value("newest", "");
  out.complete = json.value("complete", false);
  out.error = json.value("error", "");
  return out;
}

bool is_mirrored(const RunCopies& host) {
  if (host.newest.empty()) return true;
  return host.has_mirror && step_of_checkpoint(host.mirrored) >= step_of_checkpoint(host.newest);
}

std::string to_text(const RunCopies& c) {
  const CopiesJson json = {{"newest", c.newest},     {"digest", c.digest},
                           {"mirror", c.has_mirror}, {"mirrored", c.mirrored},
                           {"complete", c.complete}, {"error", c.error}};
  return json.dump(-1, ' ', false, CopiesJson::error_handler_t::replace);
}

RunCopies run_copies_of(const std::string& text) {
  RunCopies out;
  try {
    const CopiesJson json = CopiesJson::parse(text);
    json.at("newest").get_to(out.newest);
    json.at("digest").get_to(out.digest);
    json.at("mirror").get_to(out.has_mirror);
    json.at("mirrored").get_to(out.mirrored);
    json.at("complete").get_to(out.complete);
    json.at("error").get_to(out.error);
  } catch (const CopiesJson::exception& error) {
    throw MachineError("a host's message on its checkpoints cannot be read: {}", error.what());
  }
  return out;
}

}  // namespace lockstep

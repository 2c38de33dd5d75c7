#include "launch/push/push_plan.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/digest.h"
#include "base/error.h"
#include "launch/jobs/job_record.h"

namespace lockstep {

namespace {

constexpr const char* kInputs = "inputs";

// The name tells what it is, the digest of the path whose it is.
std::string place_elsewhere(const fs::path& path) {
  const std::string text = path.string();
  const std::string digest = sha256_hex(std::as_bytes(std::span(text))).substr(0, 8);
  const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  const std::string place =
      fmt::format("{}-{}{}", name.stem().string(), digest, name.extension().string());
  return (fs::path(kInputs) / place).string();
}

// A model of the hub is no path: each host fetches it.
bool is_of_the_hub(const std::string& value) { return value.starts_with("hf:"); }

class Planner {
 public:
  Planner(const PushRequest& request, KnownHashes& hashes)
      : request_(request),
        hashes_(hashes),
        folder_(fs::absolute(request.folder).lexically_normal()) {}

  PushPlan plan() {
    add("", request_.configuration.string());
    for (const InputPaths::Entry& input : request_.inputs) {
      if (!is_of_the_hub(input.value)) add(input.key, input.value);
    }
    for (auto& [path, piece] : pieces_) out_.pieces.push_back(std::move(piece));
    return std::move(out_);
  }

 private:
  void add(const std::string& key, const std::string& value) {
    JobInput input{.key = key, .value = value, .there = value};
    const fs::path path = (folder_ / in_home(value)).lexically_normal();
    std::error_code failed;
    input.sent = fs::exists(path, failed);
    if (input.sent) {
      const std::string within = path_within(folder_, path);
      const std::string there = within.empty() ? place_elsewhere(path) : within;
      if (there != fs::path(value).lexically_normal().string()) input.there = there;
      add_files(path, there, input);
    }
    out_.inputs.push_back(std::move(input));
  }

  void add_files(const fs::path& path, const std::string& there, JobInput& input) {
    const bool folder = fs::is_directory(path);
    for (Piece& piece : files_below(path.string(), hashes_)) {
      piece.path = folder ? (fs::path(there) / piece.path).lexically_normal().string() : there;
      if (in_run_folder(piece.source)) continue;
      ++input.files;
      input.bytes += piece.bytes;
      pieces_.emplace(piece.path, piece);
    }
  }

  bool in_run_folder(const fs::path& source) const {
    if (request_.run_folder.empty()) return false;
    return !path_within((folder_ / request_.run_folder).lexically_normal(), source).empty();
  }

  const PushRequest& request_;
  KnownHashes& hashes_;
  fs::path folder_;
  std::map<std::string, Piece> pieces_;
  PushPlan out_;
};

}  // namespace

std::string path_within(const fs::path& folder, const fs::path& path) {
  fs::path relative = path.lexically_normal().lexically_relative(folder.lexically_normal());
  if (!relative.has_filename()) relative = relative.parent_path();
  return relative.empty() || *relative.begin() == ".." ? "" : relative.string();
}

PushPlan plan_push(const PushRequest& request, KnownHashes& hashes) {
  return Planner(request, hashes).plan();
}

std::string path_setting(const std::string& key, const std::string& path) {
  const bool plain = path.find('/') != std::string::npos && path.find('"') == std::string::npos;
  if (plain) return key + "=" + path;
  std::string quoted = path;
  return key + "=" + toml_text(&quoted);
}

}  // namespace lockstep

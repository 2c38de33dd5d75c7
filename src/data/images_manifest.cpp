#include "data/images_manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;
constexpr const char* kKind = "images";

Json to_json(const std::vector<OddImage>& images) {
  Json out = Json::array();
  for (const OddImage& image : images) out.push_back({{"name", image.name}, {"what", image.what}});
  return out;
}

std::vector<OddImage> odd_from_json(const Json& json) {
  std::vector<OddImage> out;
  for (const Json& image : json) out.push_back({image.at("name"), image.at("what")});
  return out;
}

ImagesManifest from_json(const Json& json) {
  ImagesManifest out;
  out.lockstep_version = json.at("lockstep_version");
  out.input = json.at("input");
  out.parameters = json.at("parameters").get<std::map<std::string, std::string>>();
  out.classes = json.at("classes").get<std::vector<std::string>>();
  for (const Json& split : json.at("splits")) {
    out.splits.push_back({.name = split.at("name"),
                          .images = split.at("images"),
                          .bytes = split.at("bytes"),
                          .index = split.at("index"),
                          .shards = split.at("shards").get<std::vector<std::string>>()});
  }
  out.odd_counts = json.at("odd_counts").get<std::map<std::string, int64_t>>();
  out.odd = odd_from_json(json.at("odd"));
  out.left_out = odd_from_json(json.at("left_out"));
  for (const Json& file : json.at("files")) {
    out.files.push_back({file.at("name"), file.at("bytes"), file.at("sha256")});
  }
  return out;
}

}  // namespace

const ImageSplitRecord* ImagesManifest::find_split(std::string_view name) const {
  for (const ImageSplitRecord& split : splits) {
    if (split.name == name) return &split;
  }
  return nullptr;
}

bool has_manifest(const fs::path& folder) { return fs::exists(folder / kManifestName); }

ImagesManifest read_images_manifest(const fs::path& folder) {
  fs::path path = folder / kManifestName;
  std::string text = read_file(path);
  try {
    Json json = Json::parse(text);
    if (json.value("kind", "") != kKind) {
      DataError error("{}: not of prepared images", path.string());
      error.set_advice("lockstep prepare images DIR --out " + folder.string());
      throw error;
    }
    int64_t version = json.at("format_version");
    if (version != kFormatVersion) {
      throw DataError("{}: format version {}, this program reads version {}; prepare it again",
                      path.string(), version, kFormatVersion);
    }
    return from_json(json);
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged manifest", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

void write_images_manifest(const fs::path& folder, const ImagesManifest& manifest) {
  Json splits = Json::array(), files = Json::array();
  for (const ImageSplitRecord& split : manifest.splits) {
    splits.push_back({{"name", split.name},
                      {"images", split.images},
                      {"bytes", split.bytes},
                      {"index", split.index},
                      {"shards", split.shards}});
  }
  for (const FileRecord& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  Json json{{"format_version", manifest.format_version},
            {"kind", kKind},
            {"lockstep_version", manifest.lockstep_version},
            {"input", manifest.input},
            {"parameters", manifest.parameters},
            {"classes", manifest.classes},
            {"splits", splits},
            {"odd_counts", manifest.odd_counts},
            {"odd", to_json(manifest.odd)},
            {"left_out", to_json(manifest.left_out)},
            {"files", files}};
  write_file(folder / kManifestName, json.dump(2) + "\n");
  sync_folder(folder);
}

}  // namespace lockstep

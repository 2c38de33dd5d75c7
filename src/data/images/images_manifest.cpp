#include "data/images/images_manifest.h"

#include "data/manifest/manifest_json.h"

namespace lockstep {

namespace {

constexpr ManifestKind kImages{"images", "prepared images", "lockstep prepare images DIR --out "};

ManifestJson to_json(const std::vector<OddImage>& images) {
  ManifestJson out = ManifestJson::array();
  for (const OddImage& image : images) out.push_back({{"name", image.name}, {"what", image.what}});
  return out;
}

std::vector<OddImage> odd_from_json(const ManifestJson& json) {
  std::vector<OddImage> out;
  for (const ManifestJson& image : json) out.push_back({image.at("name"), image.at("what")});
  return out;
}

ImagesManifest images_manifest_from_json(const ManifestJson& json) {
  ImagesManifest out;
  out.lockstep_version = json.at("lockstep_version");
  out.input = json.at("input");
  out.parameters = json.at("parameters").get<std::map<std::string, std::string>>();
  out.classes = json.at("classes").get<std::vector<std::string>>();
  for (const ManifestJson& split : json.at("splits")) {
    out.splits.push_back({.name = split.at("name"),
                          .images = split.at("images"),
                          .bytes = split.at("bytes"),
                          .index = split.at("index"),
                          .sums = split.value("sums", ""),
                          .shards = split.at("shards").get<std::vector<std::string>>()});
  }
  out.odd_counts = json.at("odd_counts").get<std::map<std::string, int64_t>>();
  out.odd = odd_from_json(json.at("odd"));
  out.left_out = odd_from_json(json.at("left_out"));
  out.files = files_from_json(json.at("files"));
  return out;
}

}  // namespace

const ImageSplitRecord* ImagesManifest::find_split(std::string_view name) const {
  for (const ImageSplitRecord& split : splits) {
    if (split.name == name) return &split;
  }
  return nullptr;
}

const FileRecord* ImagesManifest::find_file(std::string_view name) const {
  for (const FileRecord& file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

bool has_manifest(const fs::path& folder) { return fs::exists(folder / kManifestName); }

ImagesManifest read_images_manifest(const fs::path& folder) {
  ImagesManifest out;
  read_manifest_json(folder, kImages,
                     [&](const ManifestJson& json) { out = images_manifest_from_json(json); });
  return out;
}

void write_images_manifest(const fs::path& folder, const ImagesManifest& manifest) {
  ManifestJson splits = ManifestJson::array();
  for (const ImageSplitRecord& split : manifest.splits) {
    splits.push_back({{"name", split.name},
                      {"images", split.images},
                      {"bytes", split.bytes},
                      {"index", split.index},
                      {"sums", split.sums},
                      {"shards", split.shards}});
  }
  write_manifest_json(folder, kImages,
                      {{"lockstep_version", manifest.lockstep_version},
                       {"input", manifest.input},
                       {"parameters", manifest.parameters},
                       {"classes", manifest.classes},
                       {"splits", splits},
                       {"odd_counts", manifest.odd_counts},
                       {"odd", to_json(manifest.odd)},
                       {"left_out", to_json(manifest.left_out)},
                       {"files", to_json(manifest.files)}});
}

}  // namespace lockstep

#include "data/images/shard_images.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

const FileRecord& need_file(const ImagesManifest& manifest, const fs::path& folder,
                            const std::string& name) {
  const FileRecord* file = manifest.find_file(name);
  if (file == nullptr) {
    throw DataError("{}: damaged: no file {} in it", (folder / kManifestName).string(), name);
  }
  return *file;
}

std::vector<ImageShards::Shard> shards_of(const fs::path& folder, const ImagesManifest& manifest,
                                          const ImageSplitRecord& split) {
  std::vector<ImageShards::Shard> out;
  for (const std::string& name : split.shards) {
    out.push_back({folder / name, need_file(manifest, folder, name).bytes});
  }
  return out;
}

}  // namespace

void fail_empty_class(const std::string& where, const std::string& name,
                      const UnreadPictures& unread) {
  DataError error("{}: class \"{}\" has no images", where, name);
  if (!unread.empty()) error.set_cause(unread.text());
  error.set_advice("remove the class from all splits, or add images (.jpg, .jpeg, .png)");
  throw error;
}

ShardImages::ShardImages(const fs::path& folder, const ImagesManifest& manifest,
                         const ImageSplitRecord& split)
    : folder_(folder),
      record_(split),
      classes_(manifest.classes),
      files_(folder / split.index, shards_of(folder, manifest, split), std::ssize(classes_)) {
  if (files_.size() != split.images) {
    throw DataError("{}: {} holds {} images, {} says {}", folder.string(), split.index,
                    files_.size(), kManifestName, split.images);
  }
  std::vector<bool> seen(classes_.size());
  for (int64_t i = 0; i < files_.size(); ++i) seen[static_cast<std::size_t>(label(i))] = true;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) fail_empty_class((folder / split.name).string(), classes_[i]);
  }
  for (const std::string& name : split.shards) {
    shard_bytes_.push_back(need_file(manifest, folder, name).bytes);
  }
  if (!split.sums.empty()) sums_.emplace(folder / split.sums, size());
  Digest hash = Digest::sha256();
  auto add = [&](const std::string& text) { hash.update(text.c_str(), text.size() + 1); };
  for (const std::string& name : classes_) add(name);
  for (const FileRecord& file : manifest.files) {
    bool used = file.name == split.index || std::find(split.shards.begin(), split.shards.end(),
                                                      file.name) != split.shards.end();
    if (used) add(file.sha256);
  }
  identity_ = hash.hex();
}

std::string ShardImages::name(int64_t index) const {
  return record_.name + "/" + std::string(files_.name(index));
}

std::span<const std::byte> ShardImages::bytes(int64_t index, std::vector<std::byte>&) const {
  const std::size_t shard = place(index).shard;
  if (!has_shard(shard)) throw DataError("{}: not there", (folder_ / shard_name(shard)).string());
  return files_.bytes(index);
}

std::unique_ptr<ShardImages> open_shard_images(const fs::path& data, const std::string& split) {
  const ImagesManifest manifest = read_images_manifest(data);
  return std::make_unique<ShardImages>(data, manifest, find_images_split(manifest, data, split));
}

const ImageSplitRecord& find_images_split(const ImagesManifest& manifest, const fs::path& data,
                                          const std::string& split) {
  if (const ImageSplitRecord* found = manifest.find_split(split)) return *found;
  std::vector<std::string> names;
  for (const ImageSplitRecord& record : manifest.splits) names.push_back(record.name);
  throw DataError("{}: no split \"{}\"{} ({})", data.string(), split, did_you_mean(split, names),
                  join(names, ", "));
}

}  // namespace lockstep

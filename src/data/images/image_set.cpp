#include "data/images/image_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/images/image_names.h"
#include "data/images/images_manifest.h"
#include "data/images/shard_images.h"

namespace lockstep {

namespace {

constexpr int64_t kSizesCompared = 1024;  // the sizes of a million files would take minutes on NFS

std::vector<std::string> sorted_names(const fs::path& folder, bool folders,
                                      UnreadPictures* unread = nullptr) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with(".")) continue;
    if (unread != nullptr) unread->note(name);
    bool wanted = folders ? it->is_directory() : !it->is_directory() && is_image_name(name);
    if (wanted) out.push_back(std::move(name));
  }
  if (error) throw DataError("{}: cannot be read: {}", folder.string(), error.message());
  std::sort(out.begin(), out.end());
  return out;
}

// The images of SPLIT/CLASS/FILE. All names are in one string, because there may be a million.
class FolderImages : public ImageSet {
 public:
  FolderImages(const fs::path& data, const std::string& split) : data_(data), split_(split) {
    fs::path folder = data / split;
    UnreadPictures unread;
    classes_ = sorted_names(folder, true, &unread);
    if (classes_.empty()) {
      DataError error("{}: holds no class folders", folder.string());
      error.set_advice("expected " + folder.string() +
                       "/CLASS/FILE.jpg; lockstep prepare images reads archives and ILSVRC's flat "
                       "val folder");
      throw error;
    }
    for (const std::string& name : classes_) {
      first_.push_back(size());
      for (const std::string& file : sorted_names(folder / name, false, &unread)) {
        ends_.push_back((ends_.empty() ? 0 : ends_.back()) + file.size());
        names_ += file;
      }
      if (size() == first_.back()) fail_empty_class(folder.string(), name, unread);
    }
    if (!unread.empty()) log_warning("{}: {}", folder.string(), unread.text());
  }

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override {
    return std::upper_bound(first_.begin(), first_.end(), index) - first_.begin() - 1;
  }
  std::string name(int64_t index) const override {
    return split_ + "/" + classes_[static_cast<std::size_t>(label(index))] + "/" +
           std::string(file(index));
  }

  std::span<const std::byte> bytes(int64_t index, std::vector<std::byte>& space) const override {
    fs::path path = data_ / name(index);
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
      throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
    }
    space.resize(static_cast<std::size_t>(info.st_size));
    for (std::size_t done = 0; done < space.size();) {
      ssize_t n = ::read(fd.get(), space.data() + done, space.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
      if (n == 0) throw DataError("{}: became shorter while it was read", path.string());
      done += static_cast<std::size_t>(n);
    }
    return space;
  }

  // Hashes all names and the sizes of at most 2,047 files.
  std::string identity() const override {
    Digest hash = Digest::sha256();
    auto add = [&](std::string_view text) { hash.update(text.data(), text.size() + 1); };
    for (const std::string& name : classes_) add(name);
    hash.update(names_.data(), names_.size());
    hash.update(ends_.data(), ends_.size() * sizeof ends_[0]);
    hash.update(first_.data(), first_.size() * sizeof first_[0]);
    int64_t step = std::max<int64_t>(1, size() / kSizesCompared);
    for (int64_t i = 0; i < size(); i += step) {
      std::error_code absent;  // an absent file has a distinct size
      uint64_t bytes = fs::file_size(data_ / name(i), absent);
      hash.update(&bytes, sizeof bytes);
    }
    return hash.hex();
  }

 private:
  std::string_view file(int64_t index) const {
    auto i = static_cast<std::size_t>(index);
    uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(names_).substr(begin, ends_[i] - begin);
  }

  fs::path data_;
  std::string split_;
  std::vector<std::string> classes_;
  std::vector<int64_t> first_;  // [classes], index of its first image
  std::string names_;           // of all files, concatenated
  std::vector<uint64_t> ends_;  // [images], ends in names_
};

// Returns, for example, "a, b and 5 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  std::string out = join(shown, ", ");
  if (names.size() > kShown) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

// Throws DataError when shards are missing.
std::unique_ptr<ImageSet> open_all_shards(const fs::path& data, const std::string& split) {
  std::unique_ptr<ShardImages> out = open_shard_images(data, split);
  std::vector<std::string> missing;
  for (std::size_t s = 0; s < out->shards(); ++s) {
    if (!out->has_shard(s)) missing.push_back(out->shard_name(s));
  }
  if (missing.empty()) return out;
  DataError error("{}: {} of its {} shards of {} are not there: {}", data.string(), missing.size(),
                  out->shards(), split, some_of(missing));
  error.set_advice(
      "ranks on several machines fetch from each other what one of them has; a single one needs "
      "all");
  throw error;
}

}  // namespace

std::unique_ptr<ImageSet> open_image_set(const fs::path& data, const std::string& split) {
  require_data_folder(data);
  if (has_manifest(data)) return open_all_shards(data, split);
  if (!fs::is_directory(data / split)) {
    std::vector<std::string> names = sorted_names(data, true);
    DataError error("{}: no folder \"{}\"{}", data.string(), split, did_you_mean(split, names));
    error.set_advice("expected " + (data / split).string() +
                     "/CLASS/FILE.jpg, or shards made by lockstep prepare images");
    throw error;
  }
  return std::make_unique<FolderImages>(data, split);
}

void require_data_folder(const fs::path& data) {
  if (data.empty()) throw ConfigError("images.data: expected a folder of images or shards");
  if (fs::is_directory(data)) return;
  DataError error("{}: no such folder", data.string());
  error.set_advice(
      "lockstep cluster setup --copy brings a folder to all hosts, --copy-share a part of prepared "
      "shards to each");
  throw error;
}

int64_t count_images(const fs::path& data, const std::string& split) {
  require_data_folder(data);
  return has_manifest(data) ? find_images_split(read_images_manifest(data), data, split).images
                            : open_image_set(data, split)->size();
}

void check_same_classes(const ImageSet& train, const ImageSet& validation) {
  std::vector<std::string> missing, unknown;
  const std::vector<std::string>&a = train.classes(), &b = validation.classes();
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(missing));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(unknown));
  if (missing.empty() && unknown.empty()) return;
  std::string text;
  if (!missing.empty()) text += "; the second lacks " + some_of(missing);
  if (!unknown.empty()) text += "; the first lacks " + some_of(unknown);
  DataError error("{} and {}: not the same classes{}", train.name(0), validation.name(0), text);
  error.set_cause("a label is the number of its class in the sorted list: lists must be equal");
  throw error;
}

}  // namespace lockstep

#include "data/store/folder_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/digest.h"
#include "base/error.h"

namespace lockstep {

namespace {

// The reason of a failed system call as the error that a store throws.
[[noreturn]] void fail_folder(const fs::path& path, const char* what, int reason) {
  const std::string text = std::strerror(reason);
  if (reason == EACCES || reason == EPERM || reason == EROFS) {
    throw ConfigError("{}: cannot be {}: {}", path.string(), what, text);
  }
  throw MachineError("{}: cannot be {}: {}", path.string(), what, text);
}

class FolderStore : public ObjectStore {
 public:
  FolderStore(fs::path root, const StoreOptions& options)
      : root_(std::move(root)), options_(options) {}

  void put(const std::string& key, const fs::path& file, const std::string& sha256) override {
    make_root();
    const fs::path target = root_ / key;
    fs::path part = target;
    part += ".part";
    std::error_code failed;
    fs::create_directories(target.parent_path(), failed);
    if (failed) fail_folder(target.parent_path(), "made", failed.value());
    Digest digest = Digest::sha256();
    copy(file, part, {O_WRONLY | O_CREAT | O_TRUNC, 0}, &digest);
    if (!sha256.empty() && digest.hex() != sha256) {
      fs::remove(part, failed);
      throw MachineError("{}: has another SHA-256 than its checkpoint says", file.string());
    }
    if (::rename(part.c_str(), target.c_str()) != 0) fail_folder(target, "written", errno);
    sync_folder(target.parent_path());
  }

  bool get(const std::string& key, const fs::path& file, int64_t offset) override {
    if (!fs::is_regular_file(root_ / key)) return false;
    copy(root_ / key, file, {O_WRONLY | O_CREAT | O_APPEND, offset}, nullptr);
    return true;
  }

  std::vector<StoredObject> list(const std::string& folder) override {
    std::vector<StoredObject> out;
    std::error_code failed;
    const fs::path top = folder.empty() ? root_ : root_ / folder;
    if (!fs::exists(top, failed)) return out;
    fs::recursive_directory_iterator entries(top, failed), end;
    for (; !failed && entries != end; entries.increment(failed)) {
      std::error_code gone;
      if (!entries->is_regular_file(gone) || gone) continue;
      const auto bytes = static_cast<int64_t>(entries->file_size(gone));
      if (!gone) out.push_back({entries->path().lexically_relative(root_).string(), bytes});
    }
    if (failed) fail_folder(top, "read", failed.value());
    return out;
  }

  void remove(const std::string& key) override {
    std::error_code failed;
    fs::remove(root_ / key, failed);
    if (failed) fail_folder(root_ / key, "removed", failed.value());
    fs::remove((root_ / key).parent_path(), failed);  // where it was the folder's last file
  }

 private:
  struct Target {
    int flags = 0;
    int64_t offset = 0;  // of the source
  };

  // The last folder of the address is made, but none above it: a disk that is not mounted would
  // otherwise be taken for an empty one.
  void make_root() const {
    if (fs::is_directory(root_)) return;
    if (::mkdir(root_.c_str(), 0777) == 0) return;
    if (errno == ENOENT) {
      ConfigError error("{}: there is no folder {}", root_.string(),
                        root_.parent_path().empty() ? "." : root_.parent_path().string());
      error.set_advice("make it, or look whether its disk is mounted");
      throw error;
    }
    fail_folder(root_, "made", errno);
  }

  void copy(const fs::path& from, const fs::path& to, Target how, Digest* digest) const {
    const Descriptor in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in.open()) fail_folder(from, "read", errno);
    const Descriptor out(::open(to.c_str(), how.flags | O_CLOEXEC, 0666));
    if (!out.open()) fail_folder(to, "written", errno);
    std::vector<char> buffer(1 << 20);
    for (int64_t at = how.offset;;) {
      if (options_.cancel != nullptr && options_.cancel->load()) {
        throw MachineError("{}: given up", to.string());
      }
      const ssize_t n = ::pread(in.get(), buffer.data(), buffer.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_folder(from, "read", errno);
      if (n == 0) break;
      if (digest != nullptr) digest->update(buffer.data(), static_cast<std::size_t>(n));
      for (ssize_t done = 0; done < n;) {
        const ssize_t m =
            ::write(out.get(), buffer.data() + done, static_cast<std::size_t>(n - done));
        if (m < 0 && errno != EINTR) fail_folder(to, "written", errno);
        if (m > 0) done += m;
      }
      at += n;
    }
    if (::fsync(out.get()) != 0) fail_folder(to, "written", errno);
  }

  fs::path root_;
  StoreOptions options_;
};

}  // namespace

std::unique_ptr<ObjectStore> open_folder_store(const StoreAddress& address,
                                               const StoreOptions& options) {
  return std::make_unique<FolderStore>(address.path, options);
}

}  // namespace lockstep

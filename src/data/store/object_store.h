// Files kept elsewhere by their keys: in a bucket of S3 or of a server that speaks like it, in a
// folder that ssh reaches, or in a folder that is seen here (a network file system, another disk).
// A file appears under its key whole or not at all. No secret is part of an address.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct StoreAddress {
  enum class Kind { kFolder, kS3, kSsh };
  Kind kind = Kind::kFolder;
  std::string text;         // as given, without slashes at its end
  std::string host;         // of ssh: [user@]host; of S3: the bucket
  std::optional<int> port;  // of ssh
  std::string path;         // the folder; of S3 the prefix, which may be empty
};

// Returns whether the text begins with s3://, ssh:// or file://.
bool is_store_address(const std::string& text);

// Parses s3://BUCKET[/PREFIX], ssh://[USER@]HOST[:PORT]/PATH, file:///PATH or the path of a folder.
// Throws ConfigError that says what is wrong with it, also for a password within it.
StoreAddress parse_store_address(const std::string& text);

struct StoredObject {
  std::string key;
  int64_t bytes = 0;
};

struct StoreOptions {
  const std::atomic<bool>* cancel = nullptr;  // a transfer under way ends soon once it is true
  int64_t part_bytes = 64'000'000;  // of S3: a larger file goes up in parts of this size or more
};

// Keys are relative paths such as "checkpoints/step_900/DONE". All functions throw ConfigError for
// what a retry does not cure (no rights, no bucket, no credentials) and MachineError for the rest
// (no route, a line that broke, a full disk). One object belongs to one thread at a time.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Stores the file, which does not change meanwhile and has this SHA-256 (empty: not known yet).
  // Throws MachineError when what arrived is not what was sent, as far as the other side tells.
  virtual void put(const std::string& key, const fs::path& file, const std::string& sha256) = 0;
  // Appends the object's bytes from `offset` on to the file, which it makes. Returns false when
  // there is no such object. What came before a failure stays in the file.
  virtual bool get(const std::string& key, const fs::path& file, int64_t offset) = 0;
  // Returns the objects whose keys begin with this folder's name and a slash; all for "".
  virtual std::vector<StoredObject> list(const std::string& folder) = 0;
  virtual void remove(const std::string& key) = 0;  // it need not be there
};

// Opens an address; of S3 it reads the environment. Nothing is sent yet.
std::unique_ptr<ObjectStore> open_store(const StoreAddress& address,
                                        const StoreOptions& options = {});

// Returns the content of a small object, or nothing when there is none. Retries.
std::optional<std::string> object_text(ObjectStore& store, const std::string& key);
void put_text(ObjectStore& store, const std::string& key, const std::string& text);

struct WantedObject {
  std::string key;
  fs::path file;
  int64_t bytes = -1;  // -1: unknown
  std::string sha256;  // empty: not checked
};

// Fetches an object: goes on with FILE.part where an earlier call stopped, retries with pauses, and
// checks size and hash before the file gets its name. Throws DataError for an absent object or a
// wrong hash and MachineError when nothing comes after several attempts.
void fetch_object(ObjectStore& store, const WantedObject& wanted);

}  // namespace lockstep

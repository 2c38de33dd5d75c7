// Fetches models and data sets of the Hugging Face hub into the same cache as huggingface_hub, so
// that either finds what the other has fetched. The layout below HF_HUB_CACHE:
//
//   models--OWNER--NAME/blobs/ETAG               contents of files; ETAG.incomplete: partial ones
//   models--OWNER--NAME/refs/REVISION            the last known commit of a branch or tag
//   models--OWNER--NAME/snapshots/COMMIT/FILE    links to blobs
//   models--OWNER--NAME/.no_exist/COMMIT/FILE    empty: the hub has no such file
//   models--OWNER--NAME/.lockstep/COMMIT.json    the files of a commit and its card; ours alone
//   .locks/models--OWNER--NAME/ETAG.lock         locked (flock) while a blob is fetched
//
// and datasets--OWNER--NAME likewise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/download.h"

namespace lockstep {

struct HttpHead;

struct HubSettings {
  fs::path cache;
  std::string endpoint = "https://huggingface.co";
  std::string token;     // empty: none
  bool offline = false;  // use only the cache
  DownloadOptions download = {};

  // Reads HF_HUB_CACHE, HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH and HF_HUB_OFFLINE, with the
  // defaults of huggingface_hub.
  static HubSettings from_environment();
};

struct HubReference {
  std::string repository;  // "OWNER/NAME", or "NAME" for the oldest ones
  std::string revision = "main";
  bool dataset = false;  // else a model

  std::string text() const;  // "hf:datasets/OWNER/NAME@REVISION"
};
// Parses "hf:[datasets/]OWNER/NAME[@REVISION]". Returns nothing without the prefix "hf:". Throws
// ConfigError when the rest is malformed.
std::optional<HubReference> hub_reference(const std::string& source);

// What the hub says of a repository at a revision.
struct HubListing {
  std::string commit;
  std::vector<std::string> files;  // paths in the repository
  std::string card;                // the metadata of README.md as JSON; "{}" when not known
};

class Hub {
 public:
  explicit Hub(HubSettings settings) : settings_(std::move(settings)) {}

  // Returns SNAPSHOT/name, or nothing when the model has no such file. Fetches the file if it is
  // missing or the revision has moved. Of several processes that want the same file one fetches it
  // and the others wait. Without network the cached file is used with a warning. Throws DataError
  // for an unknown model or revision, denied access, and offline use of a file that is not cached;
  // throws MachineError when the hub cannot be reached and the file is not cached.
  std::optional<fs::path> file(const HubReference& model, const std::string& name) const;

  // Returns the files of a repository at a revision, and its card. Without network, or offline,
  // what the cache has: the answer of an earlier call, else the files of the snapshot and no card.
  // Throws as file() does.
  HubListing listing(const HubReference& repository) const;

  // Fetches files of a commit and returns the folder of its snapshot; the names are relative to it.
  // REQUIRES: the revision is a commit. Throws as file() does, and DataError when a file is absent.
  fs::path fetch_all(const HubReference& commit, const std::vector<std::string>& names) const;

  // Returns the folder of the snapshot after fetching the files that a model needs: config.json,
  // its weights (of the first kind of formats/weight_files.h that exists) and, if they exist,
  // vocab.txt, tokenizer_config.json and preprocessor_config.json. Throws DataError when
  // config.json or the weights are missing.
  fs::path model(const HubReference& model) const;

 private:
  struct Remote;  // the hub's answer about a file
  // The cache's answer about a file: unknown, or its path, or that there is no such file.
  struct Cached {
    bool known = false;
    std::optional<fs::path> path;
  };

  fs::path folder(const HubReference& model) const;
  void note_revision(const HubReference& repository, const std::string& commit) const;
  std::optional<HubListing> cached_listing(const HubReference& repository) const;
  HubListing ask_listing(const HubReference& repository) const;
  std::vector<std::string> ask_tree(const HubReference& commit) const;
  [[noreturn]] void refuse(const HubReference& repository, const HttpHead& head) const;
  std::string url(const HubReference& model, const std::string& name) const;
  std::vector<std::string> headers() const;
  Cached cached(const HubReference& model, const std::string& name) const;
  std::optional<Remote> ask(const HubReference& model, const std::string& name) const;
  void fetch(const HubReference& model, const std::string& name, const Remote& remote) const;

  HubSettings settings_;
};

// Returns the folder of a model: `source` itself, or the snapshot of hf:OWNER/NAME[@REVISION].
// Throws DataError when there is no such folder, and ConfigError for a data set.
fs::path find_model(const std::string& source);
// Fetches more files of a model that find_model() found as `folder`, those that exist; does nothing
// unless `source` is on the hub.
void fetch_companions(const std::string& source, const fs::path& folder,
                      const std::vector<std::string>& names);
// Returns the folder of some files of a model, of which at least one exists: `source` itself, or
// the snapshot of hf:OWNER/NAME[@REVISION], in which only these are fetched. Throws DataError when
// there is no such folder or it has none of them.
fs::path find_model_files(const std::string& source, const std::vector<std::string>& names);

}  // namespace lockstep

// Models of the Hugging Face hub, kept in the cache that huggingface_hub keeps: what either fetched
// the other finds. Its layout, below HF_HUB_CACHE:
//
//   models--OWNER--NAME/blobs/ETAG               the files' contents; ETAG.incomplete: on their way
//   models--OWNER--NAME/refs/REVISION            the commit that a branch or tag stood for last
//   models--OWNER--NAME/snapshots/COMMIT/FILE    links to blobs
//   models--OWNER--NAME/.no_exist/COMMIT/FILE    empty: the hub has no such file
//   .locks/models--OWNER--NAME/ETAG.lock         held (flock) while a blob is fetched
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "data/fetch/download.h"

namespace lockstep {

struct HubSettings {
  fs::path cache;
  std::string endpoint = "https://huggingface.co";
  std::string token;     // empty: none
  bool offline = false;  // the cache alone is asked
  DownloadOptions download = {};

  // HF_HUB_CACHE, HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE and what
  // huggingface_hub takes where they are not set.
  static HubSettings from_environment();
};

struct HubReference {
  std::string repository;  // "OWNER/NAME", or "NAME" of the oldest models
  std::string revision = "main";
};
// Of "hf:OWNER/NAME[@REVISION]"; nothing when it does not begin so. ConfigError: malformed.
std::optional<HubReference> hub_reference(const std::string& source);

class Hub {
 public:
  explicit Hub(HubSettings settings) : settings_(std::move(settings)) {}

  // SNAPSHOT/name, fetched where it is not there yet or the revision has moved on; nothing when the
  // model has no such file. Processes that want the same file wait for one of them. Without the
  // network a cached one serves, which is said. DataError: no such model or revision, not allowed,
  // or offline and not in the cache. MachineError: not reached, and not in the cache.
  std::optional<fs::path> file(const HubReference& model, const std::string& name) const;

  // The snapshot's folder with what a model is used with: config.json, its weights (the first kind
  // of formats/weight_files.h that there is), vocab.txt and tokenizer_config.json where it has
  // them. DataError: it has no config.json or no weights.
  fs::path model(const HubReference& model) const;

 private:
  struct Remote;  // what the hub says of a file
  // What the cache says of it: nothing known, or where it is, or that there is none.
  struct Cached {
    bool known = false;
    std::optional<fs::path> path;
  };

  fs::path folder(const HubReference& model) const;
  std::string url(const HubReference& model, const std::string& name) const;
  std::vector<std::string> headers() const;
  Cached cached(const HubReference& model, const std::string& name) const;
  std::optional<Remote> ask(const HubReference& model, const std::string& name) const;
  void fetch(const HubReference& model, const std::string& name, const Remote& remote) const;

  HubSettings settings_;
};

// The folder of a model: `source` itself, or the snapshot of hf:OWNER/NAME[@REVISION]. DataError:
// no such folder.
fs::path find_model(const std::string& source);

}  // namespace lockstep

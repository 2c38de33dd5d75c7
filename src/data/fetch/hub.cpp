#include "data/fetch/hub.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "data/fetch/hub_paths.h"
#include "formats/weight_files.h"

namespace lockstep {

namespace {

std::string from_environment(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

bool is_on(const std::string& value) {
  std::string upper;
  for (unsigned char c : value) upper += static_cast<char>(std::toupper(c));
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

bool is_hexadecimal(const std::string& text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isxdigit(c) && !std::isupper(c);
         });
}

// Makes a relative link at `path` to the blob, which stays valid when the cache is moved.
void link_to(const fs::path& blob, const fs::path& path) {
  make_folders(path.parent_path());
  const fs::path target = blob.lexically_relative(path.parent_path());
  const fs::path fresh = path.string() + fmt::format(".{}", ::getpid());
  std::error_code failed;
  fs::create_symlink(target, fresh, failed);
  if (!failed) fs::rename(fresh, path, failed);
  if (failed) throw MachineError("{}: cannot be linked: {}", path.string(), failed.message());
}

}  // namespace

bool is_commit(const std::string& revision) { return is_hexadecimal(revision, 40); }

std::string in_url(const std::string& text, const std::string& kept) {
  std::string out;
  for (char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::strchr("-._~", c) != nullptr || kept.find(c) != std::string::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

void make_folders(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
}

struct Hub::Remote {
  std::string commit, etag;
  int64_t bytes = -1;
};

HubSettings HubSettings::from_environment() {
  using lockstep::from_environment;
  HubSettings out;
  const fs::path home = from_environment("HOME", "/tmp");
  const fs::path caches = from_environment("XDG_CACHE_HOME", (home / ".cache").string());
  const fs::path hf_home = from_environment("HF_HOME", (caches / "huggingface").string());
  out.cache = from_environment(
      "HF_HUB_CACHE", from_environment("HUGGINGFACE_HUB_CACHE", (hf_home / "hub").string()));
  out.endpoint = from_environment("HF_ENDPOINT", out.endpoint);
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  out.token = from_environment("HF_TOKEN", from_environment("HUGGING_FACE_HUB_TOKEN"));
  const fs::path token_file = from_environment("HF_TOKEN_PATH", (hf_home / "token").string());
  if (out.token.empty() && fs::is_regular_file(token_file)) {
    out.token = trim(read_file(token_file));
  }
  out.offline =
      is_on(from_environment("HF_HUB_OFFLINE")) || is_on(from_environment("TRANSFORMERS_OFFLINE"));
  return out;
}

std::optional<HubReference> hub_reference(const std::string& source) {
  if (!source.starts_with("hf:")) return std::nullopt;
  constexpr const char* kDatasets = "datasets/";
  HubReference out;
  out.repository = source.substr(3);
  out.dataset = out.repository.starts_with(kDatasets);
  if (out.dataset) out.repository.erase(0, std::strlen(kDatasets));
  const std::size_t at = out.repository.find('@');
  if (at != std::string::npos) {
    out.revision = out.repository.substr(at + 1);
    out.repository.resize(at);
  }
  const std::vector<std::string> parts = split(out.repository, '/');
  auto is_name = [](const std::string& name) {
    return !name.empty() && !name.starts_with('.') &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
             return std::isalnum(c) || c == '-' || c == '_' || c == '.';
           });
  };
  const bool whole = parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), is_name) &&
                     !out.revision.empty() && out.revision.find("..") == std::string::npos;
  const char* const prefix = out.dataset ? "hf:datasets/" : "hf:";
  if (!whole) {
    throw ConfigError("\"{0}\": expected {1}OWNER/NAME or {1}OWNER/NAME@REVISION", source, prefix);
  }
  return out;
}

std::string HubReference::text() const {
  return fmt::format("hf:{}{}@{}", dataset ? "datasets/" : "", repository, revision);
}

fs::path Hub::folder(const HubReference& model) const {
  return settings_.cache /
         ((model.dataset ? "datasets--" : "models--") + join(split(model.repository, '/'), "--"));
}

std::string Hub::url(const HubReference& model, const std::string& name) const {
  return fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint, model.dataset ? "datasets/" : "",
                     model.repository, in_url(model.revision, ""), in_url(name, "/"));
}

std::vector<std::string> Hub::headers() const {
  std::vector<std::string> out = {"Accept-Encoding: identity"};
  if (!settings_.token.empty()) out.push_back("Authorization: Bearer " + settings_.token);
  return out;
}

Hub::Cached Hub::cached(const HubReference& model, const std::string& name) const {
  std::string commit = model.revision;
  const fs::path ref = folder(model) / "refs" / model.revision;
  if (fs::is_regular_file(ref)) commit = trim(read_file(ref));
  const fs::path path = folder(model) / "snapshots" / commit / name;
  if (fs::exists(path)) return {true, path};
  // A model's snapshot with other files counts as complete: files that it lacks are assumed not to
  // exist.
  return {fs::exists(folder(model) / ".no_exist" / commit / name) ||
              (!model.dataset && fs::exists(folder(model) / "snapshots" / commit / "config.json")),
          std::nullopt};
}

void Hub::refuse(const HubReference& repository, const HttpHead& head) const {
  const std::string problem = head.get("x-error-code");
  DataError error("{}: the hub answers {}{}", repository.text(), head.status,
                  problem.empty() ? "" : " (" + problem + ")");
  const char* const kind = repository.dataset ? "data set" : "model";
  error.set_cause(problem == "RevisionNotFound" ? "there is no such revision"
                  : problem == "GatedRepo"
                      ? "its owner must allow you to read it"
                      : fmt::format("there is no such {}, or it is private", kind));
  error.set_advice(settings_.token.empty() ? "HF_TOKEN=..., when it is private or gated"
                                           : "a token that may read it");
  throw error;
}

// Returns nothing when the hub has no such file, and records that in the cache.
std::optional<Hub::Remote> Hub::ask(const HubReference& model, const std::string& name) const {
  const HttpHead head = http_head(url(model, name), headers(), settings_.download);
  Remote out{.commit = head.get("x-repo-commit"), .etag = head.get("x-linked-etag")};
  const std::string problem = head.get("x-error-code");
  if (head.status == 404 && problem == "EntryNotFound") {
    if (is_commit(out.commit)) {
      const fs::path absent = folder(model) / ".no_exist" / out.commit / name;
      make_folders(absent.parent_path());
      write_file(absent, "");
    }
    return std::nullopt;
  }
  if (head.status >= 400) refuse(model, head);
  if (out.etag.empty()) out.etag = head.get("etag");
  if (out.etag.starts_with("W/")) out.etag = out.etag.substr(2);
  std::erase(out.etag, '"');
  const std::string size =
      head.get(head.headers.contains("x-linked-size") ? "x-linked-size" : "content-length");
  std::from_chars(size.data(), size.data() + size.size(), out.bytes);
  const bool safe = !out.etag.empty() && out.etag.find('/') == std::string::npos;
  if (!is_commit(out.commit) || !safe) {
    throw DataError("{}: no answer of a Hugging Face hub: X-Repo-Commit or ETag is missing",
                    url(model, name));
  }
  return out;
}

void Hub::fetch(const HubReference& model, const std::string& name, const Remote& remote) const {
  const fs::path blob = folder(model) / "blobs" / remote.etag;
  const fs::path lock_file =
      settings_.cache / ".locks" / folder(model).filename() / (remote.etag + ".lock");
  make_folders(lock_file.parent_path());
  FileLock lock(lock_file);  // only one process fetches a blob
  lock.lock();
  if (fs::exists(blob)) return;
  make_folders(blob.parent_path());
  Download wanted{.url = url({model.repository, remote.commit, model.dataset}, name),
                  .path = blob,
                  .check = {.bytes = remote.bytes},
                  .headers = headers(),
                  .part = blob.string() + ".incomplete"};
  if (is_hexadecimal(remote.etag, 64)) wanted.check.sha256 = remote.etag;  // so for large ones
  constexpr int64_t kSmall = 1'000'000;  // data sets may have thousands of such files
  if (!model.dataset || remote.bytes < 0 || remote.bytes >= kSmall) {
    log_info("fetching {} of {}{}", name, model.repository,
             remote.bytes < 0 ? "" : ", " + short_bytes(static_cast<double>(remote.bytes)));
  }
  try {
    download(wanted, settings_.download);
  } catch (Error& error) {
    error.set_advice("the same command again: it goes on where this one stopped");
    throw;
  }
}

void Hub::note_revision(const HubReference& repository, const std::string& commit) const {
  const fs::path ref = folder(repository) / "refs" / repository.revision;
  make_folders(ref.parent_path());
  write_file(ref, commit);
}

std::optional<fs::path> Hub::file(const HubReference& model, const std::string& name) const {
  if (is_commit(model.revision)) {  // a commit never changes
    const fs::path path = folder(model) / "snapshots" / model.revision / name;
    if (fs::exists(path)) return path;
    if (fs::exists(folder(model) / ".no_exist" / model.revision / name)) return std::nullopt;
  }
  if (settings_.offline) {
    const Cached found = cached(model, name);
    if (found.known) return found.path;
    DataError error("{}: {} is not in the cache {}", model.text(), name, settings_.cache.string());
    error.set_cause("HF_HUB_OFFLINE is set: nothing is fetched");
    throw error;
  }
  std::optional<Remote> remote;
  try {
    remote = ask(model, name);
  } catch (const MachineError& error) {
    const Cached found = cached(model, name);
    if (!found.known) throw;
    log_warning("{}; going on with the cache", error.what());
    return found.path;
  }
  if (!remote) return std::nullopt;
  if (remote->commit != model.revision) note_revision(model, remote->commit);
  const fs::path path = folder(model) / "snapshots" / remote->commit / name;
  if (fs::exists(path)) return path;
  fetch(model, name, *remote);
  link_to(folder(model) / "blobs" / remote->etag, path);
  return path;
}

fs::path Hub::model(const HubReference& reference) const {
  const std::optional<fs::path> config = file(reference, "config.json");
  if (!config) {
    throw DataError("{}: has no config.json", reference.text());
  }
  const fs::path snapshot = config->parent_path();
  // All files are taken from the commit of the first one, because the branch may move meanwhile.
  const HubReference commit{reference.repository, snapshot.filename().string()};
  for (const char* name : {"vocab.txt", "tokenizer_config.json", "preprocessor_config.json"}) {
    file(commit, name);
  }
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    const std::optional<fs::path> weights = file(commit, name);
    if (!weights) continue;
    for (const std::string& part : files_of_index(*weights)) {
      if (!file(commit, part)) {
        throw DataError("{}: {} names {}, which is not there", reference.text(), name, part);
      }
    }
    return snapshot;
  }
  throw DataError("{}: has neither model.safetensors nor pytorch_model.bin", reference.text());
}

namespace {

fs::path existing_folder(const std::string& source) {
  if (fs::is_directory(source)) return source;
  DataError error("{}: there is no such folder", source);
  if (std::count(source.begin(), source.end(), '/') == 1) {
    error.set_advice("hf:" + source + " for a model of the Hugging Face hub");
  }
  throw error;
}

}  // namespace

fs::path find_model(const std::string& source) {
  if (const std::optional<HubReference> reference = hub_reference(source)) {
    if (reference->dataset) throw ConfigError("{}: a data set; expected a model", source);
    return Hub(HubSettings::from_environment()).model(*reference);
  }
  return existing_folder(source);
}

void fetch_companions(const std::string& source, const fs::path& folder,
                      const std::vector<std::string>& names) {
  const std::optional<HubReference> reference = hub_reference(source);
  if (!reference) return;
  const Hub hub(HubSettings::from_environment());
  for (const std::string& name : names) {
    hub.file({reference->repository, folder.filename().string()}, name);
  }
}

fs::path find_model_files(const std::string& source, const std::vector<std::string>& names) {
  std::optional<HubReference> reference = hub_reference(source);
  if (!reference) return existing_folder(source);
  const Hub hub(HubSettings::from_environment());
  fs::path snapshot;
  for (const std::string& name : names) {
    const std::optional<fs::path> file = hub.file(*reference, name);
    if (!file || !snapshot.empty()) continue;
    snapshot = file->parent_path();
    reference->revision = snapshot.filename().string();  // the branch may move meanwhile
  }
  if (snapshot.empty()) {
    throw DataError("{}: has none of {}", source, join(names, ", "));
  }
  return snapshot;
}

}  // namespace lockstep

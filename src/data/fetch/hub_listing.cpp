// Lists and fetches whole repositories of the Hugging Face hub, through its API:
//   GET /api/datasets/OWNER/NAME/revision/REVISION                -> sha, siblings, cardData
//   GET /api/datasets/OWNER/NAME/tree/COMMIT?recursive=true       -> files, page by page
#include <atomic>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "data/fetch/hub.h"
#include "data/fetch/hub_paths.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Of more files than that the hub's answer may not name all (huggingface_hub's _snapshot_download).
constexpr std::size_t kMostSiblings = 50'000;
constexpr std::size_t kManyFiles = 16;  // from here on they are fetched side by side
constexpr int kSideBySide = 8;          // as huggingface_hub does

std::string api_url(const std::string& endpoint, const HubReference& repository,
                    const std::string& what) {
  return fmt::format("{}/api/{}/{}/{}/{}", endpoint, repository.dataset ? "datasets" : "models",
                     repository.repository, what, in_url(repository.revision, ""));
}

Json parsed(const std::string& text, const std::string& url) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw DataError("{}: no answer of a Hugging Face hub: no JSON", url);
  return json;
}

// Returns the next page's URL out of a Link header (RFC 8288): <URL>; rel="next".
std::string next_page(const HttpHead& head) {
  const std::string link = head.get("link");
  const std::size_t end = link.find(">; rel=\"next\"");
  if (end == std::string::npos) return "";
  const std::size_t begin = link.rfind('<', end);
  return begin == std::string::npos ? "" : link.substr(begin + 1, end - begin - 1);
}

void check_path(const std::string& path, const HubReference& repository) {
  for (const std::string& part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..") {
      throw DataError("{}: the hub names a file outside of the repository: {}", repository.text(),
                      path);
    }
  }
}

fs::path listing_file(const fs::path& folder, const std::string& commit) {
  return folder / ".lockstep" / (commit + ".json");
}

}  // namespace

HubListing Hub::ask_listing(const HubReference& repository) const {
  const std::string url = api_url(settings_.endpoint, repository, "revision");
  const HttpAnswerText answer = http_text(url, headers(), settings_.download);
  if (answer.head.status >= 400) refuse(repository, answer.head);
  HubListing out;
  try {
    const Json json = parsed(answer.body, url);
    out.commit = json.at("sha");
    for (const Json& file : json.value("siblings", Json::array())) {
      out.files.push_back(file.at("rfilename"));
    }
    const Json card = json.value("cardData", Json());
    out.card = card.is_object() ? card.dump() : "{}";
  } catch (const nlohmann::json::exception&) {
    throw DataError("{}: no answer of a Hugging Face hub: no sha or siblings", url);
  }
  if (!is_commit(out.commit)) throw DataError("{}: no answer of a Hugging Face hub: sha", url);
  if (out.files.empty() || out.files.size() > kMostSiblings) {
    out.files = ask_tree({repository.repository, out.commit, repository.dataset});
  }
  for (const std::string& file : out.files) check_path(file, repository);
  return out;
}

std::vector<std::string> Hub::ask_tree(const HubReference& commit) const {
  std::vector<std::string> out;
  std::string url = api_url(settings_.endpoint, commit, "tree") + "?recursive=true";
  while (!url.empty()) {
    const HttpAnswerText answer = http_text(url, headers(), settings_.download);
    if (answer.head.status >= 400) refuse(commit, answer.head);
    for (const Json& entry : parsed(answer.body, url)) {
      if (entry.value("type", "") == "file") out.push_back(entry.at("path"));
    }
    url = next_page(answer.head);
    // The token must not follow a link to another server.
    if (!url.empty() && !url.starts_with(settings_.endpoint + "/")) break;
  }
  return out;
}

std::optional<HubListing> Hub::cached_listing(const HubReference& repository) const {
  const fs::path cache = folder(repository);
  HubListing out{.commit = repository.revision, .files = {}, .card = "{}"};
  const fs::path ref = cache / "refs" / repository.revision;
  if (fs::is_regular_file(ref)) out.commit = trim(read_file(ref));
  const fs::path saved = listing_file(cache, out.commit);
  if (fs::is_regular_file(saved)) {
    const Json json = Json::parse(read_file(saved), nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("files")) {
      out.files = json.at("files").get<std::vector<std::string>>();
      out.card = json.value("card", Json::object()).dump();
      return out;
    }
  }
  const fs::path snapshot = cache / "snapshots" / out.commit;
  if (!fs::is_directory(snapshot)) return std::nullopt;
  for (const auto& entry : fs::recursive_directory_iterator(snapshot)) {
    if (entry.is_regular_file()) {
      out.files.push_back(entry.path().lexically_relative(snapshot).string());
    }
  }
  return out;
}

HubListing Hub::listing(const HubReference& repository) const {
  if (settings_.offline) {
    if (std::optional<HubListing> found = cached_listing(repository)) return *found;
    DataError error("{}: not in the cache {}", repository.text(), settings_.cache.string());
    error.set_cause("HF_HUB_OFFLINE is set: nothing is fetched");
    throw error;
  }
  HubListing out;
  try {
    out = ask_listing(repository);
  } catch (const MachineError& error) {
    const std::optional<HubListing> found = cached_listing(repository);
    if (!found) throw;
    log_warning("{}; going on with the cache", error.what());
    return *found;
  }
  if (out.commit != repository.revision) note_revision(repository, out.commit);
  const fs::path file = listing_file(folder(repository), out.commit);
  make_folders(file.parent_path());
  write_file(file, Json{{"files", out.files}, {"card", Json::parse(out.card)}}.dump() + "\n");
  return out;
}

fs::path Hub::fetch_all(const HubReference& commit, const std::vector<std::string>& names) const {
  const fs::path snapshot = folder(commit) / "snapshots" / commit.revision;
  Progress progress("fetching " + commit.repository, "files", std::ssize(names));
  std::atomic<std::size_t> next{0}, done{0};
  std::mutex mutex;  // guards progress and failure
  std::exception_ptr failure;
  auto work = [&] {
    for (std::size_t i = next++; i < names.size(); i = next++) {
      try {
        if (!file(commit, names[i])) {
          throw DataError("{}: {} is not there", commit.text(), names[i]);
        }
        std::lock_guard lock(mutex);
        if (names.size() >= kManyFiles) progress.update(static_cast<int64_t>(++done));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = names.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; names.size() >= kManyFiles && t < kSideBySide; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return snapshot;
}

}  // namespace lockstep

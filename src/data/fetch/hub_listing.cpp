// Lists and fetches whole repositories of the Hugging Face hub, through its API:
//   GET /api/datasets/OWNER/NAME/revision/REVISION                -> sha, siblings, cardData
//   GET /api/datasets/OWNER/NAME/tree/COMMIT?recursive=true       -> files, page by page
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "data/fetch/hub.h"
#include "data/fetch/hub_answers.h"
#include "data/fetch/hub_paths.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

constexpr std::size_t kManyFiles = 16;  // from here on they are fetched side by side
constexpr int kSideBySide = 8;          // as huggingface_hub does

std::string api_url(const std::string& endpoint, const HubReference& repository,
                    const std::string& what) {
  return fmt::format("{}/api/{}/{}/{}/{}", endpoint, repository.dataset ? "datasets" : "models",
                     repository.repository, what, in_url(repository.revision, ""));
}

// Returns the next page's URL out of a Link header (RFC 8288): <URL>; rel="next".
std::string next_page(const HttpHead& head) {
  const std::string link = head.get("link");
  const std::size_t end = link.find(">; rel=\"next\"");
  if (end == std::string::npos) return "";
  const std::size_t begin = link.rfind('<', end);
  return begin == std::string::npos ? "" : link.substr(begin + 1, end - begin - 1);
}

fs::path listing_file(const fs::path& folder, const std::string& commit) {
  return folder / ".lockstep" / (commit + ".json");
}

}  // namespace

HubListing Hub::ask_listing(const HubReference& repository) const {
  const std::string url = api_url(settings_.endpoint, repository, "revision");
  const HttpAnswerText answer = http_text(url, headers(), settings_.download);
  if (answer.head.status >= 400) refuse(repository, answer.head);
  HubListing out = hub_listing_of(answer.body, url);
  if (out.files.empty()) {
    out.files = ask_tree({repository.repository, out.commit, repository.dataset});
  }
  return out;
}

std::vector<std::string> Hub::ask_tree(const HubReference& commit) const {
  std::vector<std::string> out;
  std::string url = api_url(settings_.endpoint, commit, "tree") + "?recursive=true";
  while (!url.empty()) {
    const HttpAnswerText answer = http_text(url, headers(), settings_.download);
    if (answer.head.status >= 400) refuse(commit, answer.head);
    std::vector<std::string> page = hub_tree_of(answer.body, url);
    out.insert(out.end(), std::make_move_iterator(page.begin()),
               std::make_move_iterator(page.end()));
    url = next_page(answer.head);
    // The token must not follow a link to another server.
    if (!url.empty() && !url.starts_with(settings_.endpoint + "/")) break;
  }
  return out;
}

std::optional<HubListing> Hub::cached_listing(const HubReference& repository) const {
  const fs::path cache = folder(repository);
  std::string commit = repository.revision;
  const fs::path ref = cache / "refs" / repository.revision;
  if (fs::is_regular_file(ref)) commit = trim(read_file(ref));
  const fs::path saved = listing_file(cache, commit);
  if (fs::is_regular_file(saved)) {
    try {
      HubListing out = kept_hub_listing_of(read_file(saved), saved.string());
      out.commit = commit;
      return out;
    } catch (const DataError&) {  // it is damaged: the snapshot tells which files there are
    }
  }
  const fs::path snapshot = cache / "snapshots" / commit;
  if (!fs::is_directory(snapshot)) return std::nullopt;
  HubListing out{.commit = commit, .files = {}, .card = "{}"};
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
  write_file(file, kept_text(out));
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

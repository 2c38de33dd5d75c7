#include "data/fetch/hub_answers.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/fetch/hub_paths.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// huggingface_hub's _snapshot_download
constexpr std::size_t kMostSiblings = 50'000;
// Cards are a few levels deep; copies and texts of JSON take stack for each.
constexpr int kDeepest = 64;

// Reads the answer with `read`, which may throw JSON's exceptions.
template <typename Read>
auto answer_of(std::string_view text, const std::string& url, const char* what, Read read) {
  DataError error("{}: no answer of a Hugging Face hub: no {}", url, what);
  try {
    const Json json = Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
      if (depth > kDeepest) throw error;
      return true;
    });
    return read(json);
  } catch (const nlohmann::json::exception&) {
    throw error;
  }
}

void check_paths(const std::vector<std::string>& paths, const std::string& url) {
  for (const std::string& path : paths) {
    for (const std::string& part : split(path, '/')) {
      if (!part.empty() && part != "." && part != "..") continue;
      throw DataError("{}: the hub names a file outside of the repository: {}", url, path);
    }
  }
}

}  // namespace

HubListing hub_listing_of(std::string_view answer, const std::string& url) {
  HubListing out = answer_of(answer, url, "sha or siblings", [](const Json& json) {
    HubListing found{.commit = json.at("sha"), .files = {}, .card = "{}"};
    for (const Json& file : json.value("siblings", Json::array())) {
      found.files.push_back(file.at("rfilename"));
    }
    const auto card = json.find("cardData");
    if (card != json.end() && card->is_object()) found.card = card->dump();
    return found;
  });
  if (!is_commit(out.commit)) throw DataError("{}: no answer of a Hugging Face hub: sha", url);
  if (out.files.size() > kMostSiblings) out.files.clear();
  check_paths(out.files, url);
  return out;
}

std::vector<std::string> hub_tree_of(std::string_view answer, const std::string& url) {
  std::vector<std::string> out = answer_of(answer, url, "list of files", [](const Json& json) {
    std::vector<std::string> files;
    for (const Json& entry : json) {
      if (entry.at("type") == "file") files.push_back(entry.at("path"));
    }
    return files;
  });
  check_paths(out, url);
  return out;
}

HubListing kept_hub_listing_of(std::string_view text, const std::string& file) {
  return answer_of(text, file, "files", [](const Json& json) {
    HubListing out{.commit = "", .files = json.at("files"), .card = "{}"};
    const auto card = json.find("card");
    if (card != json.end() && card->is_object()) out.card = card->dump();
    return out;
  });
}

std::string kept_text(const HubListing& listing) {
  return Json{{"files", listing.files}, {"card", Json::parse(listing.card)}}.dump() + "\n";
}

}  // namespace lockstep

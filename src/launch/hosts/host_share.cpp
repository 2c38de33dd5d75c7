#include "launch/hosts/host_share.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/host_setup.h"
#include "launch/hosts/parcel.h"
#include "launch/hosts/setup_scripts.h"

namespace lockstep {

namespace {

constexpr const char* kManifest = "manifest.json";
constexpr int64_t kLargeBytes = 1 << 20;

void require_manifest(const fs::path& folder) {
  if (fs::exists(folder / kManifest)) return;
  ConfigError error("--copy-share {}: no {} in it: only prepared data can be shared out",
                    folder.string(), kManifest);
  error.set_advice(
      "lockstep prepare images makes shards of a folder of images; --copy brings all to all hosts");
  throw error;
}

// Returns the files that the manifest of prepared data names, and itself.
std::set<std::string> prepared_files(const fs::path& folder) {
  require_manifest(folder);
  std::set<std::string> out = {kManifest};
  try {
    const nlohmann::json manifest = nlohmann::json::parse(read_file(folder / kManifest));
    for (const auto& file : manifest.at("files")) out.insert(file.at("name").get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: damaged: {}", (folder / kManifest).string(), error.what());
  }
  return out;
}

bool is_dealt(const Piece& piece) {
  const std::string ending = fs::path(piece.path).extension().string();
  if (ending == ".shard") return true;
  const bool needed = ending == ".index" || ending == ".sums" || piece.path == kManifest;
  return !needed && piece.bytes > kLargeBytes;
}

int64_t bytes_of(const std::vector<Piece>& pieces) {
  int64_t out = 0;
  for (const Piece& piece : pieces) out += piece.bytes;
  return out;
}

}  // namespace

Copy parse_share(const std::string& text) {
  Copy out = parse_copy(text);
  require_manifest(out.path);
  return out;
}

SharedOut share_out(const std::string& folder, std::size_t hosts) {
  const std::set<std::string> names = prepared_files(folder);
  SharedOut out;
  out.part.resize(hosts);
  std::size_t dealt = 0;
  KnownHashes hashes;
  for (Piece& piece : files_below(folder, hashes)) {
    if (!names.contains(piece.path)) continue;
    std::vector<Piece>& to = is_dealt(piece) ? out.part[dealt++ % hosts] : out.common;
    to.push_back(std::move(piece));
  }
  return out;
}

void HostSetup::copy_share(const Copy& copy) {
  const SharedOut shared = share_out(copy.path, hosts_.hosts.size());
  put({.name = copy.destination, .folder = copy.destination, .pieces = shared.common});
  const std::string head = shell_assignment("to", copy.destination);
  std::vector<Step> asking;
  std::map<const Host*, std::size_t> number;
  std::vector<std::unique_ptr<Parcel>> lists;  // feeders read them
  for (const Step& step : on_all(head + detail::kAskFiles, {})) {
    const std::size_t i = number[step.host] =
        static_cast<std::size_t>(step.host - &hosts_.hosts[0]);
    lists.push_back(std::make_unique<Parcel>(shared.part[i]));
    asking.push_back({step.host, step.shell_text, lists.back()->list()});
  }
  std::vector<Step> sending;
  std::map<const Host*, std::string> done;
  for (const Answer& answer : run("looking at the part of " + copy.destination, asking)) {
    const std::vector<Piece>& part = shared.part[number[answer.host]];
    std::set<std::string> right;
    for (const std::string& line : split(answer.output, '\n')) {
      if (line.ends_with(": OK")) right.insert(line.substr(0, line.size() - 4));
    }
    std::vector<Piece> changed;
    for (const Piece& piece : part) {
      if (!right.contains(piece.path)) changed.push_back(piece);
    }
    if (changed.empty()) {
      note(*answer.host,
           fmt::format("{}: its {} files, none changed", copy.destination, part.size()));
    } else if (has_room(*answer.host, answer.free_bytes(), bytes_of(changed))) {
      lists.push_back(std::make_unique<Parcel>(changed));
      std::vector<std::string> names;
      for (std::size_t i = 0; i < changed.size(); ++i) {
        names.push_back(std::to_string(i));
        lists.back()->add(names.back(), changed[i].source);
      }
      done[answer.host] =
          fmt::format("{}: {} of its {} files copied, {}", copy.destination, changed.size(),
                      part.size(), short_bytes(static_cast<double>(bytes_of(changed))));
      sending.push_back({answer.host, head + detail::kPutFiles, lists.back()->stream(names)});
    }
  }
  for (const Answer& answer : run("copying a part of " + copy.destination, sending)) {
    note(*answer.host, done[answer.host]);
  }
}

}  // namespace lockstep

#include "launch/fetch/fetch_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"

namespace lockstep {

namespace {

using FetchJson = nlohmann::ordered_json;

constexpr const char* kOwn = ".fetch";

// A host's name as that of a folder: "gpu/1" -> "gpu%2f1".
std::string folder_name(const std::string& host) {
  std::string out;
  for (unsigned char c : host) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !out.empty());
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02x}", c);
  }
  return out;
}

std::optional<GivenFile> facts_here(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return GivenFile{.bytes = info.st_size,
                   .changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

bool same_file(const std::optional<GivenFile>& a, const GivenFile& b) {
  return a && a->bytes == b.bytes && a->changed_ns == b.changed_ns;
}

}  // namespace

FetchState::FetchState(fs::path to, const std::string& source)
    : to_(std::move(to)), source_(source) {
  const bool ours = fs::exists(to_ / kOwn / "state.json");
  if (!ours && fs::exists(to_ / "config.toml")) {
    ConfigError error("{}: holds a run that no fetch brought there", to_.string());
    error.set_advice("--to another folder");
    throw error;
  }
  std::error_code failed;
  fs::create_directories(to_ / kOwn, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", to_.string(), failed.message());
  lock();
  if (ours) load(source);
  save();
}

FetchState::~FetchState() {
  try {
    save();
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
}

void FetchState::lock() {
  const fs::path path = to_ / kOwn / "lock";
  lock_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_.open()) {
    throw MachineError("{}: cannot be created: {}", path.string(), std::strerror(errno));
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError("{}: another fetch into it goes on", to_.string());
  }
}

void FetchState::load(const std::string& source) {
  const fs::path path = to_ / kOwn / "state.json";
  try {
    const FetchJson json = FetchJson::parse(read_file(path));
    const std::string before = json.at("source").get<std::string>();
    if (before != source) {
      ConfigError error("{}: was fetched from {}, not from {}", to_.string(), before, source);
      error.set_advice("--to another folder");
      throw error;
    }
    for (const auto& [host, files] : json.at("hosts").items()) {
      for (const auto& [name, file] : files.items()) {
        hosts_[host][name] = {{file.at("bytes"), file.at("inode"), file.at("changed")},
                              file.at("sha256")};
      }
    }
    for (const auto& [host, seconds] : json.at("zones").items()) zones_[host] = seconds;
    for (const auto& [name, file] : json.at("given").items()) {
      given_[name] = {file.at("bytes"), file.at("changed_ns"), file.at("source")};
    }
    promised_ = json.value("promised", promised_);
  } catch (const FetchJson::exception& error) {
    throw DataError("{}: is damaged: {}", path.string(), error.what());
  }
}

void FetchState::save() const {
  FetchJson json = {{"source", source_},
                    {"zones", zones_},
                    {"hosts", FetchJson::object()},
                    {"given", FetchJson::object()},
                    {"promised", promised_}};
  for (const auto& [host, files] : hosts_) {
    for (const auto& [name, file] : files) {
      json["hosts"][host][name] = {{"bytes", file.facts.bytes},
                                   {"inode", file.facts.inode},
                                   {"changed", file.facts.changed},
                                   {"sha256", file.sha256}};
    }
  }
  for (const auto& [name, file] : given_) {
    json["given"][name] = {
        {"bytes", file.bytes}, {"changed_ns", file.changed_ns}, {"source", file.source}};
  }
  constexpr auto kReplace = FetchJson::error_handler_t::replace;
  write_file(to_ / kOwn / "state.json", json.dump(1, ' ', false, kReplace) + "\n");
}

fs::path FetchState::mirror(const std::string& host, const std::string& path) const {
  return to_ / kOwn / "hosts" / folder_name(host) / path;
}

const KeptFile* FetchState::kept(const std::string& host, const std::string& path) const {
  const std::map<std::string, KeptFile>& files = files_of(host);
  auto found = files.find(path);
  if (found == files.end()) return nullptr;
  std::error_code none;
  const std::uintmax_t bytes = fs::file_size(mirror(host, path), none);
  const bool whole = !none && static_cast<int64_t>(bytes) >= found->second.facts.bytes;
  return whole ? &found->second : nullptr;
}

void FetchState::keep(const std::string& host, const std::string& path, KeptFile file) {
  hosts_[host][path] = std::move(file);
}

void FetchState::forget(const std::string& host, const std::string& path) {
  if (auto found = hosts_.find(host); found != hosts_.end()) found->second.erase(path);
}

const std::map<std::string, KeptFile>& FetchState::files_of(const std::string& host) const {
  static const std::map<std::string, KeptFile> none;
  auto found = hosts_.find(host);
  return found == hosts_.end() ? none : found->second;
}

double FetchState::zone_of(const std::string& host) const {
  auto found = zones_.find(host);
  return found == zones_.end() ? 0 : found->second;
}

bool FetchState::is_given(const std::string& path, const std::string& source) const {
  auto found = given_.find(path);
  return found != given_.end() && found->second.source == source &&
         same_file(facts_here(to_ / path), found->second);
}

void FetchState::require_ours(const std::string& path) const {
  const std::optional<GivenFile> here = facts_here(to_ / path);
  if (!here) return;
  auto found = given_.find(path);
  if (found != given_.end() && same_file(here, found->second)) return;
  auto promised = promised_.find(path);
  if (promised != promised_.end() && sha256_of_file(to_ / path) == promised->second) return;
  ConfigError error("{}: was changed here and would be lost", (to_ / path).string());
  error.set_advice("move it away, or --to another folder");
  throw error;
}

void FetchState::promise(const std::string& path, const std::string& sha256) {
  promised_[path] = sha256;
  save();
}

void FetchState::give(const std::string& path, const std::string& source) {
  std::optional<GivenFile> here = facts_here(to_ / path);
  if (!here) throw MachineError("{}: is not there any more", (to_ / path).string());
  here->source = source;
  given_[path] = *std::move(here);
  promised_.erase(path);
}

}  // namespace lockstep

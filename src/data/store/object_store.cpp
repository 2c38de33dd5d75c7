#include "data/store/object_store.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/store/folder_store.h"
#include "data/store/s3_store.h"
#include "data/store/ssh_store.h"

namespace lockstep {

namespace {

constexpr int kAttempts = 6;  // in a row without a byte
constexpr std::chrono::milliseconds kFirstPause{500}, kLongestPause{15'000};

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  ConfigError error("{}: {}", text, why);
  error.set_advice(
      "s3://BUCKET/PREFIX, ssh://[USER@]HOST[:PORT]/FOLDER, file:///FOLDER or a folder");
  throw error;
}

std::string without_slashes(std::string text) {
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_plain_word(const std::string& word, std::string_view also) {
  return !word.empty() && !word.starts_with('-') &&
         std::all_of(word.begin(), word.end(), [&](unsigned char c) {
           return std::isalnum(c) != 0 || also.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

void parse_ssh_host(StoreAddress& out, const std::string& authority) {
  std::string host = authority;
  const std::size_t colon = host.rfind(':');
  const bool bracketed = host.ends_with(']');
  if (colon != std::string::npos && !bracketed) {
    int port = 0;
    const char* end = host.data() + host.size();
    const auto [stop, failed] = std::from_chars(host.data() + colon + 1, end, port);
    if (failed != std::errc() || stop != end || port < 1 || port > 65535) {
      refuse(out.text, fmt::format("\"{}\" is no port from 1 to 65535 (a password has no place in "
                                   "an address: ssh takes keys)",
                                   host.substr(colon + 1)));
    }
    out.port = port;
    host.resize(colon);
  }
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  if (!is_plain_word(host, "._-@:%")) refuse(out.text, "expected a host after ssh://");
  out.host = host;
}

// The end of one attempt's failure; the pause before the next.
void pause_before_next(const std::string& what, const Error& error, int attempt) {
  const auto pause = std::min(kFirstPause * (1 << std::min(attempt, 10)), kLongestPause);
  log_warning("{}: {}; trying again in {:.1f} s", what, error.what(),
              std::chrono::duration<double>(pause).count());
  std::this_thread::sleep_for(pause);
}

int64_t size_of(const fs::path& file) {
  std::error_code absent;
  const auto bytes = fs::file_size(file, absent);
  return absent ? 0 : static_cast<int64_t>(bytes);
}

// Returns what is wrong with a file that was fetched; empty: nothing.
std::string mismatch(const fs::path& file, const WantedObject& wanted) {
  const int64_t bytes = size_of(file);
  if (wanted.bytes >= 0 && bytes != wanted.bytes) {
    return fmt::format("{} bytes came, expected {}", with_commas(bytes), with_commas(wanted.bytes));
  }
  if (wanted.sha256.empty() || sha256_of_file(file) == wanted.sha256) return "";
  return "its SHA-256 is another than expected: its bytes changed";
}

void fetch_part(ObjectStore& store, const WantedObject& wanted, const fs::path& part) {
  for (int attempt = 0;;) {
    const int64_t before = size_of(part);
    try {
      if (wanted.bytes >= 0 && before == wanted.bytes && before > 0) return;
      if (store.get(wanted.key, part, before)) return;
      throw DataError("{}: is not there", wanted.key);
    } catch (const MachineError& error) {
      attempt = size_of(part) > before ? 0 : attempt + 1;
      if (attempt >= kAttempts) throw;
      pause_before_next(wanted.key, error, attempt);
    }
  }
}

}  // namespace

bool is_store_address(const std::string& text) {
  return text.starts_with("s3://") || text.starts_with("ssh://") || text.starts_with("file://");
}

StoreAddress parse_store_address(const std::string& text) {
  StoreAddress out;
  out.text = without_slashes(text);
  if (text.empty()) refuse("\"\"", "empty; expected an address");
  const std::size_t scheme = text.find("://");
  if (scheme != std::string::npos && text.find('/') > scheme && !is_store_address(text)) {
    refuse(text,
           fmt::format("\"{}\" is no kind of address that is known", text.substr(0, scheme + 3)));
  }
  if (!is_store_address(text)) {
    out.path = out.text;
    return out;
  }
  const std::string rest = out.text.substr(std::min(scheme + 3, out.text.size()));
  const std::size_t slash = rest.find('/');
  const std::string authority = rest.substr(0, slash);
  out.path = slash == std::string::npos ? "" : rest.substr(slash);
  if (text.starts_with("file://")) {
    if (!authority.empty() || out.path.empty()) refuse(text, "expected file:/// and a whole path");
    return out;
  }
  if (text.starts_with("ssh://")) {
    out.kind = StoreAddress::Kind::kSsh;
    parse_ssh_host(out, authority);
    if (out.path.size() < 2) refuse(text, "expected a folder behind the host");
    if (out.path.starts_with("/~/")) out.path = out.path.substr(3);  // below the user's home
    return out;
  }
  out.kind = StoreAddress::Kind::kS3;
  if (authority.find('@') != std::string::npos) {
    refuse("s3://...",
           "credentials have no place in an address: they come from AWS_ACCESS_KEY_ID "
           "and AWS_SECRET_ACCESS_KEY, or from ~/.aws/credentials");
  }
  if (!is_plain_word(authority, "._-")) refuse(text, "expected a bucket after s3://");
  out.host = authority;
  out.path = out.path.empty() ? "" : out.path.substr(1);
  return out;
}

std::unique_ptr<ObjectStore> open_store(const StoreAddress& address, const StoreOptions& options) {
  switch (address.kind) {
    case StoreAddress::Kind::kS3:
      return open_s3_store(address, options);
    case StoreAddress::Kind::kSsh:
      return open_ssh_store(address, options);
    case StoreAddress::Kind::kFolder:
      break;
  }
  return open_folder_store(address, options);
}

std::optional<std::string> object_text(ObjectStore& store, const std::string& key) {
  TemporaryFolder folder;
  for (int attempt = 0;; ++attempt) {
    const fs::path file = folder.path() / std::to_string(attempt);
    try {
      if (!store.get(key, file, 0)) return std::nullopt;
      return read_file(file);
    } catch (const MachineError& error) {
      if (attempt + 1 >= kAttempts / 2) throw;
      pause_before_next(key, error, attempt);
    }
  }
}

void put_text(ObjectStore& store, const std::string& key, const std::string& text) {
  TemporaryFolder folder;
  const fs::path file = folder.path() / "text";
  write_file(file, text);
  store.put(key, file, sha256_hex(std::as_bytes(std::span(text))));
}

void fetch_object(ObjectStore& store, const WantedObject& wanted) {
  if (fs::exists(wanted.file) && mismatch(wanted.file, wanted).empty() && wanted.bytes >= 0) return;
  fs::create_directories(wanted.file.parent_path());
  fs::path part = wanted.file;
  part += ".part";
  // Without a hash a mixture of two versions would go unnoticed.
  if (wanted.sha256.empty()) fs::remove(part);
  bool resumed = size_of(part) > 0;
  if (resumed) {
    log_info("{}: going on at {}", wanted.key, short_bytes(static_cast<double>(size_of(part))));
  }
  for (;; resumed = false) {
    fetch_part(store, wanted, part);
    const std::string wrong = mismatch(part, wanted);
    if (wrong.empty()) break;
    fs::remove(part);
    if (!resumed) throw DataError("{}: {}", wanted.key, wrong);
    log_warning("{}: {}; fetching the whole file again", wanted.key, wrong);
  }
  fs::rename(part, wanted.file);
  sync_folder(wanted.file.parent_path());
}

}  // namespace lockstep

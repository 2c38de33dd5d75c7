#include "data/fetch/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/http_request.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

constexpr std::chrono::milliseconds kLongestPause{60'000};
constexpr std::array<int64_t, 8> kPassing{408, 425, 429, 500, 502, 503, 504, 520};

std::optional<int64_t> number_in(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return value;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// The headers of one answer, the last one after redirections.
struct Answer {
  int64_t status = 0;
  std::string mark;          // the validator: ETag, else Last-Modified
  int64_t range_start = 0;   // offset of the body within the file
  int64_t total_bytes = -1;  // of the whole file
};

// The partial file, open for writing.
class PartFile {
 public:
  explicit PartFile(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("created");
    bytes_ = ::lseek(fd_, 0, SEEK_END);
  }
  ~PartFile() { ::close(fd_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  int64_t bytes() const { return bytes_; }

  void clear() {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) fail("written");
    bytes_ = 0;
  }
  // Returns false when the disk refuses; errno then says why.
  bool append(const char* data, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      ssize_t n = ::write(fd_, data + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      done += static_cast<std::size_t>(n);
      bytes_ += n;
    }
    return true;
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("written");
  }
  [[noreturn]] void fail(const char* what, int reason = errno) const {
    MachineError error("{}: cannot be {}: {}", path_.string(), what, std::strerror(reason));
    if (bytes_ > 0) error.set_advice("the same command again: it goes on where this one stopped");
    throw error;
  }

 private:
  fs::path path_;
  int fd_ = -1;
  int64_t bytes_ = 0;
};

fs::path with_ending(const fs::path& path, const char* ending) {
  return fs::path(path.string() + ending);
}

fs::path part_of(const Download& wanted) {
  return wanted.part.empty() ? with_ending(wanted.path, ".part") : wanted.part;
}

class Transfer {
 public:
  Transfer(const Download& wanted, const DownloadOptions& options)
      : wanted_(wanted),
        options_(options),
        mark_path_(with_ending(part_of(wanted), ".mark")),
        part_(part_of(wanted)),
        progress_("fetching " + wanted.path.filename().string(), "bytes",
                  std::max<int64_t>(0, wanted.check.bytes)) {
    if (fs::exists(mark_path_)) mark_ = read_file(mark_path_);
    // Without the validator or a checksum a mixture of two versions would go unnoticed.
    if (mark_.empty() && !wanted.check.has_checksum()) part_.clear();
    resumed_ = part_.bytes() > 0;
    if (resumed_) log_info("{}: going on at {}", wanted.url, short_bytes(part_.bytes()));
  }

  // Returns whether the bytes came in more than one piece.
  bool resumed() const { return resumed_; }
  int64_t bytes() const { return part_.bytes(); }
  void start_over() {
    part_.clear();
    resumed_ = false;
  }

  void run() {
    std::chrono::milliseconds pause = options_.first_pause;
    for (int attempt = 1; !attempt_once(); ++attempt) {
      if (moved_) {
        attempt = 1;
        pause = options_.first_pause;
      }
      if (attempt >= options_.attempts) fail_for_good(attempt);
      std::chrono::milliseconds wait = std::clamp(pause, server_pause_, kLongestPause);
      log_warning("{}: {}; at {}, trying again in {:.1f} s", wanted_.url, problem_,
                  short_bytes(static_cast<double>(part_.bytes())),
                  std::chrono::duration<double>(wait).count());
      std::this_thread::sleep_for(wait);
      pause *= 2;
      resumed_ = part_.bytes() > 0;
    }
    part_.sync();
  }

 private:
  [[noreturn]] void fail_for_good(int attempts) const {
    MachineError error("{}: not fetched after {} attempts", wanted_.url, attempts);
    error.set_cause(problem_);
    error.set_advice(part_.bytes() > 0
                         ? fmt::format("the same command again later: {} are here and kept",
                                       short_bytes(static_cast<double>(part_.bytes())))
                         : "look at the network (a proxy: https_proxy, http_proxy), then the same "
                           "command again; or another --mirror");
    throw error;
  }

  // Returns true if the file is complete, and false if another attempt may help; problem_ then says
  // why.
  bool attempt_once() {
    answer_ = {};
    moved_ = false;
    write_errno_ = 0;
    server_pause_ = {};
    refusal_.reset();
    int64_t start = part_.bytes();
    CURLcode code = perform(start);
    if (refusal_) throw *refusal_;
    if (write_errno_ != 0) part_.fail("written", write_errno_);
    if (answer_.status == 416) return settle_beyond_end(start);
    return code == CURLE_OK && check_status();
  }

  CURLcode perform(int64_t start) {
    std::vector<std::string> lines = wanted_.headers;
    if (start > 0 && !mark_.empty()) lines.push_back("If-Range: " + mark_);
    HttpRequest request(wanted_.url, lines, options_);
    CURL* c = request.handle();
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 1L << 18);
    if (start > 0) curl_easy_setopt(c, CURLOPT_RANGE, fmt::format("{}-", start).c_str());
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, this);
    CURLcode code = request.perform();
    request.check_curable(code);
    problem_ = request.problem(code);
    if (code == CURLE_OPERATION_TIMEDOUT && moved_) problem_ = "nothing came any more";
    curl_off_t seconds = 0;
    curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &seconds);
    server_pause_ =
        std::min<std::chrono::milliseconds>(std::chrono::seconds(seconds), kLongestPause);
    return code;
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    static_cast<Transfer*>(self)->read_header({data, size});
    return size;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->take({data, size}) ? size : 0;
  }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {
      answer_ = {};
      std::size_t at = line.find(' ');
      if (at != std::string_view::npos) answer_.status = number_in(line.substr(at + 1)).value_or(0);
      return;
    }
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string_view name = line.substr(0, colon);
    std::string_view value = trim(line.substr(colon + 1));
    const bool tag = same_word(name, "etag") && !value.starts_with("W/");
    if (tag || (same_word(name, "last-modified") && answer_.mark.empty())) {
      answer_.mark = value;
    } else if (same_word(name, "content-length") && answer_.total_bytes < 0) {
      answer_.total_bytes = number_in(value).value_or(-1);
    } else if (same_word(name, "content-range")) {
      std::size_t slash = value.find('/');
      if (slash == std::string_view::npos || !value.starts_with("bytes ")) return;
      answer_.total_bytes = number_in(value.substr(slash + 1)).value_or(-1);
      answer_.range_start = number_in(value.substr(6)).value_or(0);
    }
  }

  // Prepares the partial file for the body. Returns false if it must be refused; refusal_ then says
  // why.
  bool begin_body() {
    if (answer_.status == 200) {
      if (part_.bytes() > 0) log_warning("{}: the server starts again at 0", wanted_.url);
      part_.clear();
      resumed_ = false;
      mark_ = answer_.mark;
      write_file(mark_path_, mark_);
    } else if (answer_.range_start != part_.bytes()) {
      refusal_ = DataError("{}: the server sends from byte {}, asked for {}", wanted_.url,
                           answer_.range_start, part_.bytes());
      return false;
    }
    int64_t asked = wanted_.check.bytes;
    if (asked >= 0 && answer_.total_bytes >= 0 && answer_.total_bytes != asked) {
      refusal_ = DataError("{}: the server has {} bytes, expected {}", wanted_.url,
                           with_commas(answer_.total_bytes), with_commas(asked));
      refusal_->set_cause("it is another file or another version of it");
      return false;
    }
    if (answer_.total_bytes > 0) progress_.set_total(answer_.total_bytes);
    return true;
  }

  bool take(std::string_view data) {
    if (answer_.status != 200 && answer_.status != 206) return true;  // the body of an error page
    if (!moved_ && !begin_body()) return false;
    moved_ = true;
    if (!part_.append(data.data(), data.size())) {
      write_errno_ = errno;
      return false;
    }
    progress_.update(part_.bytes());
    return true;
  }

  // The server has no bytes from `start` on: the file is already complete, or it has changed.
  bool settle_beyond_end(int64_t start) {
    if (answer_.total_bytes == start) return true;
    part_.clear();
    problem_ = "the file on the server is another now";
    return false;
  }

  bool check_status() {
    if (answer_.status == 200 || answer_.status == 206) {
      if (!moved_ && answer_.status == 200) part_.clear();  // the file is empty
      return true;
    }
    problem_ = fmt::format("the server answers {}", answer_.status);
    if (std::find(kPassing.begin(), kPassing.end(), answer_.status) != kPassing.end()) return false;
    DataError error("{}: {}", wanted_.url, problem_);
    if (answer_.status == 404) error.set_cause("there is no such file");
    if (answer_.status == 401 || answer_.status == 403) error.set_cause("access is denied");
    error.set_advice("--mirror URL|DIR, a place that has it");
    throw error;
  }

  const Download& wanted_;
  const DownloadOptions& options_;
  fs::path mark_path_;
  PartFile part_;
  Progress progress_;
  std::string mark_;  // validator of the version that the partial file belongs to
  bool resumed_ = false;

  // The state of the current attempt.
  Answer answer_;
  bool moved_ = false;  // whether bytes of the file arrived
  int write_errno_ = 0;
  std::chrono::milliseconds server_pause_{};
  std::optional<DataError> refusal_;
  std::string problem_;
};

}  // namespace

void check_file(const fs::path& path, const FileCheck& check) {
  auto bytes = static_cast<int64_t>(fs::file_size(path));
  if (check.bytes >= 0 && bytes != check.bytes) {
    throw DataError("{}: has {} bytes, expected {}", path.string(), with_commas(bytes),
                    with_commas(check.bytes));
  }
  auto compare = [&](const char* kind, const std::string& found, const std::string& expected) {
    if (found == expected) return;
    DataError error("{}: wrong checksum", path.string());
    error.set_cause(fmt::format("its {} is {}, expected {}", kind, found, expected));
    throw error;
  };
  if (!check.sha256.empty()) {
    compare("SHA-256", sha256_of_file(path), check.sha256);
  } else if (!check.md5.empty()) {
    compare("MD5", md5_of_file(path), check.md5);
  }
}

void download(const Download& wanted, const DownloadOptions& options) {
  if (fs::exists(wanted.path)) {
    try {
      return check_file(wanted.path, wanted.check);
    } catch (Error& error) {
      error.set_advice("remove it; it will be fetched again");
      throw;
    }
  }
  const fs::path part = part_of(wanted);
  Transfer transfer(wanted, options);
  while (true) {
    transfer.run();
    try {
      check_file(part, wanted.check);
      break;
    } catch (DataError& error) {
      if (!transfer.resumed()) {
        fs::remove(part);
        fs::remove(with_ending(part, ".mark"));
        error.add_context("fetching " + wanted.url);
        error.set_advice("the server has a damaged or another file: --mirror URL|DIR");
        throw;
      }
      log_warning("{}: {}; fetching the whole file again", wanted.url, error.what());
      transfer.start_over();  // the pieces may be of two versions
    }
  }
  fs::rename(part, wanted.path);
  sync_folder(wanted.path.parent_path());
  fs::remove(with_ending(part, ".mark"));
}

}  // namespace lockstep

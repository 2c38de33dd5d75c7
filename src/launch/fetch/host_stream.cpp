#include "launch/fetch/host_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestLine = 4096;

int64_t bytes_at(const FileWish& wish) {
  std::error_code none;
  const std::uintmax_t bytes = wish.from_start ? 0 : fs::file_size(wish.target, none);
  return none ? 0 : static_cast<int64_t>(bytes);
}

int64_t number_of(const std::string& word) {
  int64_t out = -1;
  auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), out);
  const bool whole = failed == std::errc() && end == word.data() + word.size();
  return whole ? out : -1;
}

[[noreturn]] void refuse_write(const fs::path& target) {
  MachineError error("{}: cannot be written: {}", target.string(), std::strerror(errno));
  error.set_advice("the same command again goes on where this one stopped");
  throw error;
}

}  // namespace

HostStream::HostStream(std::vector<FileWish> wishes)
    : wishes_(std::move(wishes)), answers_(wishes_.size()) {
  for (const FileWish& wish : wishes_) {
    std::error_code failed;
    fs::create_directories(wish.target.parent_path(), failed);
    if (failed) {
      throw MachineError("{}: cannot be created: {}", wish.target.parent_path().string(),
                         failed.message());
    }
    here_.push_back(bytes_at(wish));
  }
}

std::string HostStream::requests() const {
  std::string out;
  for (std::size_t i = 0; i < wishes_.size(); ++i) {
    out += fmt::format("{} {} |{}|\n", here_[i], i, wishes_[i].path);
  }
  return out;
}

void HostStream::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ >= 0) {
      const std::size_t size = std::min(bytes.size(), static_cast<std::size_t>(left_));
      write(bytes.substr(0, size));
      bytes.remove_prefix(size);
      continue;
    }
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > kLongestLine) throw DataError("it sends something else than files");
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    take_line(line_);
    line_.clear();
  }
}

void HostStream::take_line(std::string_view line) {
  const std::vector<std::string> words = split(line, ' ');
  const int64_t number = words.size() > 1 ? number_of(words[1]) : -1;
  const bool known = number >= 0 && number < static_cast<int64_t>(wishes_.size());
  constexpr std::size_t kWords = 7, kDigits = 64;
  if (known && words.size() == 2 && words[0] == "gone") {
    return set_state(static_cast<std::size_t>(number), FileAnswer::State::kGone);
  }
  if (!known || words.size() != kWords || words[0] != "file" || words[6].size() != kDigits) {
    throw DataError("it sends something else than files: \"{}\"", line.substr(0, 100));
  }
  const auto wish = static_cast<std::size_t>(number);
  FileAnswer& answer = answers_[wish];
  answer.facts = {number_of(words[3]), number_of(words[4]), number_of(words[5])};
  answer.sha256 = words[6];
  const int64_t offset = number_of(words[2]);
  const bool possible = offset == here_[wish] || offset == 0;
  if (!possible || answer.facts.bytes < offset) {
    throw DataError("it sends other bytes of {} than were asked for", wishes_[wish].path);
  }
  begin(wish, offset);
}

// Opens the target and takes the digest of what is there already.
void HostStream::begin(std::size_t wish, int64_t offset) {
  now_ = wish;
  at_ = offset;
  left_ = answers_[wish].facts.bytes - offset;
  const fs::path& target = wishes_[wish].target;
  file_ = Descriptor(::open(target.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_.open() || ::ftruncate(file_.get(), offset) != 0) refuse_write(target);
  digest_ = Digest::sha256();
  std::vector<char> buffer(1 << 17);
  for (int64_t done = 0; done < offset;) {
    const ssize_t size = ::pread(file_.get(), buffer.data(), buffer.size(), done);
    if (size <= 0) throw MachineError("{}: cannot be read", target.string());
    digest_.update(buffer.data(), static_cast<std::size_t>(size));
    done += size;
  }
  if (left_ == 0) end();
}

void HostStream::write(std::string_view bytes) {
  digest_.update(bytes.data(), bytes.size());
  left_ -= static_cast<int64_t>(bytes.size());
  moved_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t size = ::pwrite(file_.get(), bytes.data(), bytes.size(), at_);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) refuse_write(wishes_[now_].target);
    at_ += size;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  if (left_ == 0) end();
}

void HostStream::end() {
  left_ = -1;
  const FileWish& wish = wishes_[now_];
  const bool right = digest_.hex() == answers_[now_].sha256 &&
                     (wish.sha256.empty() || wish.sha256 == answers_[now_].sha256);
  // What is wrong here must not be gone on with.
  if (!right && ::ftruncate(file_.get(), 0) != 0) refuse_write(wish.target);
  if (right && ::fsync(file_.get()) != 0) refuse_write(wish.target);
  file_.close();
  set_state(now_, right ? FileAnswer::State::kWhole : FileAnswer::State::kChanged);
}

void HostStream::set_state(std::size_t wish, FileAnswer::State state) {
  answers_[wish].state = state;
  if (on_answer) on_answer(wish);
}

}  // namespace lockstep

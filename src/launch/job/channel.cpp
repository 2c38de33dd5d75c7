#include "launch/job/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr std::string_view kFirstLine = "lockstep agent stream 1\n";
constexpr std::size_t kLongestPreamble = 65536, kLongestFrame = 16u << 20;
constexpr std::size_t kHeader = 4;

void make_non_blocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

std::string encode_frame(char kind, std::string_view payload) {
  auto size = static_cast<uint32_t>(payload.size() + 1);
  std::string out;
  out.reserve(kHeader + size);
  for (int shift : {0, 8, 16, 24}) out += static_cast<char>(size >> shift & 0xFF);
  out += kind;
  out += payload;
  return out;
}

bool FrameReader::find_beginning() {
  std::size_t at = pending_.find(kFirstLine);
  if (at == std::string::npos) {
    if (pending_.size() <= kLongestPreamble) return false;
    throw MachineError("the other end is no agent of lockstep: it said {} bytes of other things",
                       pending_.size());
  }
  pending_.erase(0, at + kFirstLine.size());
  begun_ = true;
  return true;
}

void FrameReader::take(std::string_view bytes, const Visit& visit) {
  pending_ += bytes;
  if (!begun_ && !find_beginning()) return;
  std::size_t at = 0;
  while (pending_.size() - at >= kHeader) {
    uint32_t size = 0;
    for (std::size_t i = 0; i < kHeader; ++i) {
      size |= static_cast<uint32_t>(static_cast<unsigned char>(pending_[at + i])) << 8 * i;
    }
    if (size == 0 || size > kLongestFrame) {
      throw MachineError("the other end sent a message of {} bytes: not of this protocol", size);
    }
    if (pending_.size() - at - kHeader < size) break;
    std::string_view frame(pending_.data() + at + kHeader, size);
    at += kHeader + size;
    visit({frame[0], frame.substr(1)});
  }
  pending_.erase(0, at);
}

Channel::Channel(EventLoop& loop, Descriptor reading, Descriptor writing)
    : loop_(loop), reading_(std::move(reading)), writing_(std::move(writing)) {
  make_non_blocking(reading_);
  make_non_blocking(writing_);
}

Channel::~Channel() { close(); }

void Channel::close() {
  ended_ = true;
  if (reading_.open()) loop_.forget(reading_.get());
  if (writing_.open()) loop_.forget(writing_.get());
  reading_.close();
  writing_.close();
  queue_.clear();
  unsent_ = 0;
}

void Channel::listen(Visit visit, std::function<void(const std::string&)> ended) {
  visit_ = std::move(visit);
  on_end_ = std::move(ended);
  loop_.watch(reading_.get(), POLLIN, [this] { read(); });
}

void Channel::begin() { queue(std::string(kFirstLine)); }

void Channel::send(char kind, std::string_view payload) { queue(encode_frame(kind, payload)); }

void Channel::queue(std::string bytes) {
  if (ended_) return;
  unsent_ += bytes.size();
  queue_.push_back(std::move(bytes));
  if (queue_.size() == 1) write();
}

// An error here shows when reading as well, after all that the other end sent before.
void Channel::write() {
  while (!queue_.empty()) {
    const std::string& first = queue_.front();
    ssize_t size = ::write(writing_.get(), first.data() + written_, first.size() - written_);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      loop_.watch(writing_.get(), POLLOUT, [this] { write(); });
      return;
    }
    if (size < 0) {
      queue_.clear();
      unsent_ = 0;
      break;
    }
    written_ += static_cast<std::size_t>(size);
    unsent_ -= static_cast<std::size_t>(size);
    if (written_ < first.size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
  loop_.forget(writing_.get());
}

void Channel::read() {
  std::array<char, 65536> bytes;
  ssize_t size = ::read(reading_.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) return end("");
  last_heard_ = Clock::now();
  try {
    reader_.take({bytes.data(), static_cast<std::size_t>(size)}, [this](const Frame& frame) {
      if (!ended_) visit_(frame);
    });
  } catch (const Error& error) {
    end(error.what());
  }
}

void Channel::end(const std::string& why) {
  if (ended_) return;
  ended_ = true;
  loop_.forget(reading_.get());
  on_end_(why);
}

}  // namespace lockstep

// A decoder for tests that translates a line to its own text in capitals, and stops in the middle
// of a batch until it is told to go on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "serve/decoding_queue.h"

namespace lockstep {

class GatedDecoder : public LineDecoder {
 public:
  explicit GatedDecoder(bool open = true) : open_(open) {}

  std::vector<int32_t> encode(const std::string& line) const override {
    return {line.begin(), line.end()};
  }

  std::vector<std::vector<TranslatedLine>> decode(
      const std::vector<std::vector<int32_t>>& sources) const override {
    std::vector<std::vector<TranslatedLine>> out;
    std::vector<std::string> batch;
    for (const std::vector<int32_t>& source : sources) {
      std::string text(source.begin(), source.end());
      batch.push_back(text);
      for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
      out.push_back({{text, -1.5, std::ssize(text)}});
    }
    std::unique_lock lock(mutex_);
    batches_.push_back(batch);
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    for (const std::string& line : batch) {
      if (line == "fault") throw std::runtime_error("a planted fault");
    }
    return out;
  }

  void open() { set(true); }
  void close() { set(false); }
  // Waits until that many batches have begun; false: not within 20 s.
  bool wait_for_batches(std::size_t count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return batches_.size() >= count; });
  }
  std::vector<std::vector<std::string>> batches() const {
    std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  void set(bool open) {
    std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool open_;
  mutable std::vector<std::vector<std::string>> batches_;
};

}  // namespace lockstep

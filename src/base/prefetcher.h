// Makes the next items on a thread of its own while the caller uses the current one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace lockstep {

// Owns a thread that calls `make` repeatedly and keeps at most `depth` items ready. The destructor
// stops the thread after the current item. An exception of `make` is thrown by next() in its turn;
// but where `may_pass` says of one that it may be for what lies ready, or is in use by the caller,
// `make` is first called once more when nothing lies ready and the caller waits.
template <typename Item>
class Prefetcher {
 public:
  explicit Prefetcher(std::function<Item()> make, std::size_t depth = 4,
                      std::function<bool(const std::exception&)> may_pass = nullptr)
      : make_(std::move(make)),
        depth_(depth),
        may_pass_(std::move(may_pass)),
        thread_([this] { run(); }) {}

  ~Prefetcher() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  Item next() {
    return *next_unless([] { return false; });
  }

  // Returns nothing when `gives_up`, asked ten times a second while no item is ready, says so.
  std::optional<Item> next_unless(const std::function<bool()>& gives_up) {
    constexpr std::chrono::milliseconds kLook{100};
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !items_.empty() || failure_; };
    waited_for_ = true;
    changed_.notify_all();
    while (!changed_.wait_for(lock, kLook, ready)) {
      if (gives_up()) return std::nullopt;
    }
    waited_for_ = false;
    if (items_.empty()) std::rethrow_exception(failure_);
    Item item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

 private:
  void run() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || items_.size() < depth_; });
        if (stopping_) return;
      }
      try {
        Item item = make();
        std::lock_guard lock(mutex_);
        items_.push_back(std::move(item));
      } catch (...) {
        std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      changed_.notify_all();
    }
  }

  Item make() {
    try {
      return make_();
    } catch (const std::exception& error) {
      if (!may_pass_ || !may_pass_(error)) throw;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || (waited_for_ && items_.empty()); });
      if (stopping_) throw;
    }
    return make_();
  }

  std::function<Item()> make_;
  std::size_t depth_;
  std::function<bool(const std::exception&)> may_pass_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::exception_ptr failure_;
  bool stopping_ = false, waited_for_ = false;
  std::thread thread_;  // last member, because it uses all those above
};

}  // namespace lockstep

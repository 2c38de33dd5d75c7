// The threads that decoding may use: those of the program around it (libtorch's, in lockstep), a
// pool of its own (lockstep-translate), or none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/worker_pool.h"

namespace lockstep {

class Threads {
 public:
  virtual ~Threads() = default;
  // Returns how many threads there are, with the calling one; at least 1.
  virtual int64_t count() const = 0;

  // Calls f(first, last) for parts of [begin, end) of at least `grain` numbers that together are
  // all of it, and returns when all calls have. Inside of a part there is one thread: calls in it
  // are not divided further. The result of f must not depend on where the parts begin.
  template <class F>
  void split(int64_t begin, int64_t end, int64_t grain, const F& f) const {
    if (begin >= end) return;
    if (end - begin <= grain) return f(begin, end);
    divide(begin, end, grain, f);
  }
  // The same for n rows of `width` elements; small work stays in one thread.
  template <class F>
  void split_rows(int64_t n, int64_t width, const F& f) const {
    constexpr int64_t kElements = 16384;  // microseconds: several times what waking a thread costs
    split(0, n, std::max<int64_t>(1, kElements / std::max<int64_t>(1, width)), f);
  }

 protected:
  using Part = std::function<void(int64_t first, int64_t last)>;
  virtual void divide(int64_t begin, int64_t end, int64_t grain, const Part& f) const = 0;
};

class OneThread : public Threads {
 public:
  int64_t count() const override { return 1; }

 protected:
  void divide(int64_t begin, int64_t end, int64_t, const Part& f) const override { f(begin, end); }
};

class PoolThreads : public Threads {
 public:
  explicit PoolThreads(int64_t threads) : count_(threads), pool_(threads) {}
  int64_t count() const override { return count_; }

 protected:
  void divide(int64_t begin, int64_t end, int64_t grain, const Part& f) const override {
    thread_local bool inside = false;
    if (inside || count_ == 1) return f(begin, end);
    const int64_t parts = std::min(count_, (end - begin + grain - 1) / grain);
    const int64_t size = (end - begin + parts - 1) / parts;
    pool_.run(parts, [&](int64_t i) {
      inside = true;
      const struct Leave {
        ~Leave() { inside = false; }
      } leave;
      const int64_t first = begin + i * size;
      if (first < end) f(first, std::min(end, first + size));
    });
  }

 private:
  int64_t count_;
  mutable WorkerPool pool_;
};

}  // namespace lockstep

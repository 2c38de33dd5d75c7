// The kernels of GPUs (gpu/row_kernels.h) on the CPU: row by row, each by a team of threads.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include "gpu/row_kernels.h"

namespace lockstep {

// The team of one thread.
struct Alone {
  int64_t rank() const { return 0; }
  int64_t size() const { return 1; }
  template <class T>
  T sum(T x) const {
    return x;
  }
  float max(float x) const { return x; }
  void sync() const {}
  float* room() const {
    static thread_local std::vector<float> numbers(detail::gpu_rows::kRoom);
    return numbers.data();
  }
};

// What the threads of a team have in common.
struct TeamRoom {
  explicit TeamRoom(int size)
      : barrier(size), numbers(static_cast<std::size_t>(size)), room(detail::gpu_rows::kRoom) {}
  std::barrier<> barrier;
  std::vector<double> numbers;
  std::vector<float> room;
};

class Together {
 public:
  Together(TeamRoom& room, int rank) : room_(&room), rank_(rank) {}
  int64_t rank() const { return rank_; }
  int64_t size() const { return std::ssize(room_->numbers); }
  template <class T>
  T sum(T x) const {
    return over_all(x, [](T a, T b) { return a + b; });
  }
  float max(float x) const {
    return over_all(x, [](float a, float b) { return a > b ? a : b; });
  }
  void sync() const { room_->barrier.arrive_and_wait(); }
  float* room() const { return room_->room.data(); }

 private:
  template <class T, class Both>
  T over_all(T x, const Both& both) const {
    room_->numbers[static_cast<std::size_t>(rank_)] = static_cast<double>(x);
    room_->barrier.arrive_and_wait();
    T all = static_cast<T>(room_->numbers[0]);
    for (std::size_t i = 1; i < room_->numbers.size(); ++i) {
      all = both(all, static_cast<T>(room_->numbers[i]));
    }
    room_->barrier.arrive_and_wait();
    return all;
  }

  TeamRoom* room_;
  int rank_;
};

// How many threads a team has; 1 at first.
inline int& team_size() {
  static int size = 1;
  return size;
}

// Makes kernels of functions of a row, for make_gpu_kernels(). Rows are done one after the other.
struct HostLaunch {
  template <class Row, class Args>
  static void row(const Args& args, int64_t rows) {
    if (team_size() == 1) {
      for (int64_t row = 0; row < rows; ++row) Row{}(args, row, Alone{});
      return;
    }
    TeamRoom room(team_size());
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < team_size(); ++rank) {
      threads.emplace_back([&, rank] {
        for (int64_t row = 0; row < rows; ++row) Row{}(args, row, Together(room, rank));
      });
    }
  }
  template <class Element, class Args>
  static void element(const Args& args, int64_t count) {
    for (int64_t i = 0; i < count; ++i) Element{}(args, i);
  }
};

}  // namespace lockstep

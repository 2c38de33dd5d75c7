// Memory for rows of numbers: aligned for vector registers, without initial contents, and kept from
// use to use, since every step of a decoder asks for the same sizes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace lockstep {

class RowMemory {
 public:
  // Returns room for `count` elements. What was there before is lost if it has to grow.
  template <class T>
  T* room(int64_t count) {
    constexpr std::size_t kUnit = 64;  // bytes: a cache line
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > bytes_ || data_ == nullptr) {
      data_.reset();
      bytes_ = (bytes + kUnit) / kUnit * kUnit;
      data_.reset(std::aligned_alloc(kUnit, bytes_));
      if (data_ == nullptr) throw std::bad_alloc();
    }
    return data<T>();
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep

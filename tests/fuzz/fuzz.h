// What every fuzz target shares. A target gives foreign bytes to one parser, as a file or as they
// are. The parser may refuse them by an Error of lockstep and by nothing else: any other exception,
// a crash, a finding of ASan or UBSan, a leak, more than a second or more than 512 MB is a fault.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

// A file in memory with these bytes; its path names it while the process lives. One at a time for
// each `name`.
inline fs::path as_file(std::string_view bytes, const char* name = "input") {
  static const int descriptor = ::memfd_create(name, 0);
  if (descriptor < 0 || ::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return fs::path("/proc/self/fd") / std::to_string(descriptor);
}

// Keeps the compiler from leaving out what only computes.
template <typename T>
void use(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// Gives the bytes to one of several parsers, each of which may refuse them.
template <typename Parse>
void try_one(Parse parse) {
  try {
    use(parse());
  } catch (const Error&) {
  }
}

// Splits the input: "NAME" up to the first byte 0, and the rest.
inline std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return out;
}

}  // namespace lockstep

// Defines the target: FUZZ(bytes) { parse(bytes); }
#define FUZZ(bytes)                                                         \
  static void fuzz(std::string_view bytes);                                 \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    try {                                                                   \
      fuzz({reinterpret_cast<const char*>(data), size});                    \
    } catch (const lockstep::Error&) {                                      \
    }                                                                       \
    return 0;                                                               \
  }                                                                         \
  static void fuzz(std::string_view bytes)

#include "dist/rank/token.h"

#include <sys/random.h>

#include <charconv>

#include "base/error.h"

namespace lockstep {

Token random_token() {
  Token out;
  if (getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) {
    throw MachineError("the kernel gives no random numbers");
  }
  return out;
}

Token token_of_hex(std::string_view hex) {
  Token out;
  bool right = hex.size() == 2 * out.size();
  for (std::size_t i = 0; right && i < out.size(); ++i) {
    const char* digits = hex.data() + 2 * i;
    const auto parsed = std::from_chars(digits, digits + 2, out[i], 16);
    right = parsed.ec == std::errc() && parsed.ptr == digits + 2;
  }
  if (!right) throw MachineError("no token of a run: \"{}\"", hex);
  return out;
}

bool same_token(const Token& a, const Token& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace lockstep

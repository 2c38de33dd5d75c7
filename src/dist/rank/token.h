// Makes the secret token of one run, which the ranks share through the store: a connection that
// does not begin with it is a stranger's.
#pragma once

#include <array>
#include <string_view>

namespace lockstep {

using Token = std::array<unsigned char, 16>;

Token random_token();  // from the kernel's generator; throws MachineError if that fails
Token token_of_hex(std::string_view hex);  // throws MachineError unless 32 hexadecimal digits

// Compares in constant time: the time it takes tells nothing about the bytes.
bool same_token(const Token& a, const Token& b);

}  // namespace lockstep

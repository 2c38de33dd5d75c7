// The secret of one run, which the ranks hand each other through the store: a connection that does
// not begin with it is a stranger's.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace lockstep {

using Token = std::array<unsigned char, 16>;

Token random_token();  // of the kernel's generator; MachineError when it gives nothing
std::string to_hex(const Token& token);
Token token_of_hex(std::string_view hex);  // MachineError for anything but 32 hexadecimal digits

// Looks at all bytes, whichever differ: the time it takes tells nothing.
bool same_token(const Token& a, const Token& b);

}  // namespace lockstep

#include "dist/rank/token.h"

#include <gtest/gtest.h>

#include <set>

#include "base/digest.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(Token, IsAnotherEachTime) {
  std::set<Token> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_token());
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Token, ComesBackFromItsDigits) {
  const Token token = random_token();
  EXPECT_EQ(to_hex(token).size(), 32u);
  EXPECT_TRUE(same_token(token_of_hex(to_hex(token)), token));
}

TEST(Token, DiffersInAnyBit) {
  const Token token = random_token();
  for (std::size_t bit = 0; bit < 8 * token.size(); ++bit) {
    Token other = token;
    other[bit / 8] = static_cast<unsigned char>(other[bit / 8] ^ (1u << bit % 8));
    EXPECT_FALSE(same_token(token, other)) << bit;
  }
}

TEST(Token, IsNotMadeOfOtherWords) {
  for (const char* word :
       {"", "12", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0",
        " 123456789abcdef0123456789abcde"}) {
    EXPECT_ERROR(token_of_hex(word), MachineError, "no token of a run");
  }
}

}  // namespace
}  // namespace lockstep

// Expects that a text, such as a message or the output of a program, holds another.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace lockstep {

inline void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << text;
}

}  // namespace lockstep

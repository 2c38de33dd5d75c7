// EXPECT_ERROR(statement, DataError, "text") expects an error of that type whose whole text holds
// "text".
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

#define EXPECT_ERROR(statement, Type, words)                                            \
  do {                                                                                  \
    try {                                                                               \
      statement;                                                                        \
      ADD_FAILURE() << "no error, expected " #Type;                                     \
    } catch (const ::lockstep::Type& caught) {                                          \
      EXPECT_NE(caught.describe().find(words), std::string::npos) << caught.describe(); \
    }                                                                                   \
  } while (false)

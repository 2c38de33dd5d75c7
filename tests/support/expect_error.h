// EXPECT_ERROR(statement, DataError, "text"): throws that type and its whole text holds the words.
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

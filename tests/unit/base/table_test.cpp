#include "base/table.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Table, AlignsColumns) {
  EXPECT_EQ(format_table({{"host", "MB"}, {"gpu-server", "7"}, {"ü", "1234", "x"}, {"last"}}, " r"),
            "host          MB\n"
            "gpu-server     7\n"
            "ü           1234  x\n"
            "last\n");
  EXPECT_EQ(format_table({}), "");
}

}  // namespace
}  // namespace lockstep

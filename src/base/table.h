// Formats rows of text as columns for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Returns the table. Columns are two blanks apart and as wide as their widest cell (in code
// points); lines have no trailing blanks. `right` has one character per column: 'r' aligns the
// column to the right, anything else to the left. Rows may have fewer cells than others.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view right = "");

}  // namespace lockstep

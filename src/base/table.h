// Rows of text in columns, for a person at a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Columns two blanks apart, each as wide as its widest cell (in code points); lines end without
// blanks. `right`: an 'r' for each column that is aligned to the right, anything else to the left.
// Rows may be shorter than others.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view right = "");

}  // namespace lockstep

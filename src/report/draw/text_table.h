// A table for people: the same cells become columns at a terminal, Markdown, or HTML.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::string alignment;  // 'r' or 'l' per column
};

}  // namespace lockstep

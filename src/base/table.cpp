#include "base/table.h"

#include <algorithm>

#include "base/text.h"

namespace lockstep {

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view right) {
  auto width_of = [](const std::string& cell) { return to_code_points(cell).size(); };
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string gap(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i < right.size() && right[i] == 'r' ? gap + row[i] : row[i] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace lockstep

// WMT's test sets of before 2021: SGM, one <seg> a line, source and reference in a file each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct SgmSegment {
  std::string place;  // "document/segment", as the file names them
  std::string text;   // white space squeezed, entities (&amp; and so on) resolved
};

// The segments in the order of the file; `name` is for the errors. Throws DataError when a segment
// does not end, has no number, or there is none.
std::vector<SgmSegment> read_sgm(std::string_view text, const std::string& name);

}  // namespace lockstep

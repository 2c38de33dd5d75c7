// Reads WMT's test sets from before 2021: SGM with one <seg> per line, source and reference in
// separate files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct SgmSegment {
  std::string place;  // "document/segment", as the file names them
  std::string text;   // white space reduced, entities (&amp; etc.) resolved
};

// Returns the segments in the order of the file. `name` is for error messages. Throws DataError
// when a segment does not end or has no number, and when there is none.
std::vector<SgmSegment> read_sgm(std::string_view text, const std::string& name);

}  // namespace lockstep

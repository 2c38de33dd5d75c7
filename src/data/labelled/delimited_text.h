// Records of a file with separated fields, plain or .gz: CSV as RFC 4180 has it, with quotes around
// fields that may hold separators, quotes and line ends; or without quotes, as GLUE's TSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/lines/line_stream.h"

namespace lockstep {

class DelimitedReader {
 public:
  DelimitedReader(const fs::path& path, char separator, bool quotes);

  // The fields of the next record, in memory that is used again; empty lines are passed over. False
  // after the last one. Throws DataError with file and line for what is not UTF-8, a quote that is
  // never closed, and text behind a closing quote.
  bool next(std::vector<std::string>& fields);
  int64_t line() const { return first_line_; }  // where that record begins, from 1

 private:
  // One field from `at` on; the place behind its separator, or npos at the end of the record.
  std::size_t plain_field(std::size_t at, std::string& field);
  std::size_t quoted_field(std::size_t at, std::string& field);

  fs::path path_;
  char separator_;
  bool quotes_;
  LineStream lines_;
  std::string_view rest_;  // the present line
  int64_t first_line_ = 0;
};

}  // namespace lockstep

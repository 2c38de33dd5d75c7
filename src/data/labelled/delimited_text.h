// Reads records of a file with separated fields, plain or .gz. CSV follows RFC 4180: fields in
// quotes may contain separators, quotes and line ends. Without quotes it reads files like GLUE's
// TSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/lines/line_stream.h"

namespace lockstep {

// How the fields of a table are separated.
struct Separation {
  char separator = ',';
  bool quotes = true;

  std::string name() const;  // "comma", "semicolon" or "tab"
};

// Returns it by the file's name and first line. A .csv has commas; or semicolons, as spreadsheets
// write where the comma is the decimal point, or tabs, if its first line has those alone outside of
// quotes. Others have tabs, and no quotes. Throws DataError for a file that cannot be read.
Separation separation_of(const fs::path& table);

class DelimitedReader {
 public:
  DelimitedReader(const fs::path& path, const Separation& separation);

  // Reads the fields of the next record into reused memory and skips empty lines. Returns false
  // after the last record. Throws DataError with file and line for text that is not UTF-8, a quote
  // that is never closed, and text after a closing quote.
  bool next(std::vector<std::string>& fields);
  int64_t line() const { return first_line_; }  // where the current record begins, from 1

 private:
  // Both read one field from `at` on. They return the position after its separator, or npos at the
  // end of the record.
  std::size_t plain_field(std::size_t at, std::string& field);
  std::size_t quoted_field(std::size_t at, std::string& field);

  fs::path path_;
  Separation separation_;
  LineStream lines_;
  std::string_view rest_;  // the rest of the current line
  int64_t first_line_ = 0;
};

}  // namespace lockstep

#include "data/labelled/delimited_text.h"

#include "base/error.h"

namespace lockstep {

namespace {
constexpr std::size_t kEnd = std::string_view::npos;
}

std::string Separation::name() const {
  return separator == ',' ? "comma" : separator == ';' ? "semicolon" : "tab";
}

Separation separation_of(const fs::path& table) {
  const fs::path plain = table.extension() == ".gz" ? table.stem() : table;
  if (plain.extension() != ".csv") return {'\t', false};
  LineStream lines(table);
  std::string_view line;
  while (line.empty() && lines.next(line)) {
  }
  bool quoted = false, semicolons = false, tabs = false;
  for (const char c : line) {
    quoted ^= c == '"';
    if (quoted) continue;
    if (c == ',') return {',', true};
    semicolons |= c == ';';
    tabs |= c == '\t';
  }
  return {semicolons ? ';' : tabs ? '\t' : ',', true};
}

DelimitedReader::DelimitedReader(const fs::path& path, const Separation& separation)
    : path_(path), separation_(separation), lines_(path) {}

bool DelimitedReader::next(std::vector<std::string>& fields) {
  do {
    if (!lines_.next(rest_)) return false;
  } while (rest_.empty());
  first_line_ = lines_.number();
  std::size_t count = 0;
  for (std::size_t at = 0; at != kEnd; ++count) {
    if (count == fields.size()) fields.emplace_back();
    const bool quoted = separation_.quotes && at < rest_.size() && rest_[at] == '"';
    at = quoted ? quoted_field(at + 1, fields[count]) : plain_field(at, fields[count]);
  }
  fields.resize(count);
  return true;
}

std::size_t DelimitedReader::plain_field(std::size_t at, std::string& field) {
  const std::size_t end = rest_.find(separation_.separator, at);
  field.assign(rest_.substr(at, end == kEnd ? kEnd : end - at));
  return end == kEnd ? kEnd : end + 1;
}

std::size_t DelimitedReader::quoted_field(std::size_t at, std::string& field) {
  field.clear();
  const int64_t opened = lines_.number();
  while (true) {
    const std::size_t quote = rest_.find('"', at);
    field.append(rest_.substr(at, quote == kEnd ? kEnd : quote - at));
    if (quote == kEnd) {
      field += '\n';
      at = 0;
      if (!lines_.next(rest_)) {
        DataError error("{}:{}: a quote that is never closed", path_.string(), opened);
        error.set_advice("--quotes no, if quotes are part of the text");
        throw error;
      }
    } else if (quote + 1 < rest_.size() && rest_[quote + 1] == '"') {
      field += '"';
      at = quote + 2;
    } else {
      at = quote + 1;
      break;
    }
  }
  if (at == rest_.size()) return kEnd;
  if (rest_[at] == separation_.separator) return at + 1;
  DataError error("{}:{}: text behind a closing quote: expected a separator or the end of the line",
                  path_.string(), lines_.number());
  error.set_advice(
      "\"\" for a quote within quotes, or --quotes no, if quotes are part of the text");
  throw error;
}

}  // namespace lockstep

// Tables of texts with labels: csv, tsv, JSON lines. The first byte says which.
#include "data/labelled/delimited_text.h"

#include "data/labelled/json_text.h"
#include "fuzz.h"

FUZZ(bytes) {
  const char kind = bytes.empty() ? '\0' : bytes.front();
  bytes.remove_prefix(std::min<std::size_t>(1, bytes.size()));
  const lockstep::fs::path file = lockstep::as_file(bytes);
  if (kind == 'j') {
    const auto source = lockstep::open_json_text(file, {});
    while (auto block = source->next()) lockstep::use((*block)());
    return;
  }
  lockstep::DelimitedReader reader(file, {kind == 't' ? '\t' : ',', kind != 't'});
  for (std::vector<std::string> fields; reader.next(fields);) lockstep::use(fields);
}

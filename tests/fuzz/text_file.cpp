// Labelled texts as ids.
#include "formats/text_file.h"

#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::TextFile file(lockstep::as_file(bytes));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < file.size(); ++i) {
    ids.resize(static_cast<std::size_t>(file.length(i)));
    file.read(i, ids.data());
    lockstep::use(file.second_begin(i) + file.label(i));
    lockstep::use(file.value(i));
  }
}

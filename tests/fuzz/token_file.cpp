// Sentence pairs as ids (LSTOKENS).
#include "formats/token_file.h"

#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::TokenFile file(lockstep::as_file(bytes));
  for (int64_t i = 0; i < file.pairs(); ++i) {
    for (const int32_t id : file.source(i)) lockstep::use(id);
    for (const int32_t id : file.target(i)) lockstep::use(id);
  }
}

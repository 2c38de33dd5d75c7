// The vocabulary of an edge folder that came of a published model.
#include "edge/edge_vocabulary.h"
#include "fuzz.h"

FUZZ(bytes) {
  const std::string kind(lockstep::take_part(bytes));
  lockstep::use(lockstep::read_edge_pieces(bytes, "vocabulary", kind));
}

// A pickle, which torch.save puts into its archives.
#include "formats/pickle.h"

#include "fuzz.h"

FUZZ(bytes) { lockstep::use(lockstep::read_pickle(std::as_bytes(std::span(bytes)), "pickle")); }

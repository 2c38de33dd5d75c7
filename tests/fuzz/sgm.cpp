// A test set of WMT in SGML.
#include "data/parallel/sgm.h"

#include "fuzz.h"

FUZZ(bytes) { lockstep::use(lockstep::read_sgm(bytes, "input.sgm")); }

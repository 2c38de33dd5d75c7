// Spans of a few steps, for the timeline.
#include "formats/span_file.h"

#include "fuzz.h"

FUZZ(bytes) { lockstep::use(lockstep::read_span_file(lockstep::as_file(bytes))); }

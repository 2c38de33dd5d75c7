// A compiled message catalogue of gettext.
#include "formats/mo_file.h"

#include "fuzz.h"

FUZZ(bytes) { lockstep::use(lockstep::parse_mo_file(std::as_bytes(std::span(bytes)), "input.mo")); }

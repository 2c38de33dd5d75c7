// Pages of help, and manual pages.
#include "data/pages/page_blocks.h"

#include "fuzz.h"

FUZZ(bytes) {
  lockstep::use(lockstep::markup_blocks(bytes));
  lockstep::use(lockstep::manual_blocks(bytes));
}

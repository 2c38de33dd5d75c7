// lockstep list KIND and lockstep explain SECTION: show what there is, from the catalogues.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int list(const Arguments& arguments);
int explain(const Arguments& arguments);

}  // namespace lockstep

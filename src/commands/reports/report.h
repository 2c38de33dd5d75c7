// lockstep report: explains from its folder what a run did.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `report RUN [EARLIER...] [--out DIR]`: writes report.html, report.md, report.json and the
// figures.
int report(const Arguments& arguments);

}  // namespace lockstep

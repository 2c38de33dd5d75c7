// lockstep report: what a run did, explained from its folder.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

// `report RUN [EARLIER...] [--out DIR]`: writes report.html, report.md, report.json and the
// figures.
int report(const Arguments& arguments);

}  // namespace lockstep

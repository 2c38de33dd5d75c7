// `lockstep trace RUN`: writes one timeline of a run over all ranks and hosts
// (docs/report.md#lockstep-trace).
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int trace(const Arguments& arguments);

}  // namespace lockstep

// Turns exceptions of c10d and Gloo into a MachineError that a person can act on.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"
#include "dist/liveness/failure_detector.h"

namespace lockstep {

// Returns the text of an exception without its backtrace and the source paths of a foreign build.
std::string plain_text_of(const std::exception& exception);

// Whether the text says that a time limit passed (as opposed to a connection that broke).
bool says_timeout(const std::string& text);

// `who`: "rank 2 of 4"; `what`: "all_reduce_sum (operation 17)".
MachineError peer_error(const std::string& who, const std::string& what,
                        const std::exception& exception);

// The error that every rank throws once it is known who is at fault. `what`: what this rank was
// doing, as above.
MachineError verdict_error(const RankVerdict& verdict, const std::string& who,
                           const std::string& what);

}  // namespace lockstep

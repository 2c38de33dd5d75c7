// Failures of devices, as a person and a launcher learn of them.
#pragma once

#include <exception>
#include <optional>

#include "base/error.h"

namespace lockstep {

// Returns the error that an exception of libtorch means where a device failed rather than the
// program: no memory, or what CUDA and its libraries say of a GPU. Nothing for any other exception.
std::optional<MachineError> device_error(const std::exception& error);

}  // namespace lockstep

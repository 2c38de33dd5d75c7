// Declares names only; see gloo_names/gloo/context.h.
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport

// The one precompiled header (not to be included by hand: files include what they use).
#include <fmt/format.h>
#include <torch/torch.h>

// The one precompiled header (not to be included by hand: files include what they use). Not
// <torch/torch.h>: its neural-network modules, which we do not use, double every file's time. Not
// <torch/autograd.h>: templates that inline functions of a header use are instantiated anew in every
// file, of this one for 0.6 s, and few files need it.
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

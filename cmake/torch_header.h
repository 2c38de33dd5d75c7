// The one precompiled header (not to be included by hand: files include what they use). Not
// <torch/torch.h>: its neural-network modules, which we do not use, double every file's time.
#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

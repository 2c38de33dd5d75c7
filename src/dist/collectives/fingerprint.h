// Computes fingerprints: numbers that tell whether two arrays hold the same bits, for
// ranks that must agree.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// Returns 64 bits that depend on the bytes and their order, at about memory speed. The same bytes
// give the same number on every machine with the same byte order. Not cryptographic.
uint64_t fingerprint(std::span<const std::byte> bytes);

// Fingerprints a contiguous tensor's elements, of any dtype. A CUDA tensor is read in pieces and
// has the same number as on the CPU; shape and dtype do not matter.
uint64_t fingerprint(const torch::Tensor& tensor);

}  // namespace lockstep

// A number that tells whether two arrays hold the same bits, for ranks that must agree.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// 64 bits over the bytes and their order, at about memory speed. The same bytes give the same
// number on every machine with the same byte order. Not cryptographic.
uint64_t fingerprint(std::span<const std::byte> bytes);

// Of a contiguous tensor's elements, any dtype. A CUDA tensor is read in pieces, so that it has the
// number that it would have on the CPU; shape and dtype do not enter.
uint64_t fingerprint(const torch::Tensor& tensor);

}  // namespace lockstep

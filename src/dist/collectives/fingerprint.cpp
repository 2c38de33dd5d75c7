#include "dist/collectives/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace lockstep {
namespace {

// Odd constants with about as many ones as zeros: the fractions of the golden ratio and of sqrt(2).
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr uint64_t kRoot = 0x6A09E667F3BCC909;

// Each step is a bijection of the state for a given word, and of the word for a given state, so one
// changed word always changes its lane.
uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * kGolden;
  return state ^ std::rotr(state, 29) ^ std::rotr(state, 47);
}

// The hash has eight lanes, so that the multiplications of one need not wait for those of another.
class Hash {
 public:
  // All calls but the last REQUIRE a multiple of 64 bytes.
  void update(const std::byte* data, std::size_t size) {
    total_ += size;
    std::size_t blocks = size / kBlock;
    for (std::size_t b = 0; b < blocks; ++b) absorb(data + b * kBlock);
    if (std::size_t rest = size % kBlock; rest != 0) {
      std::byte last[kBlock] = {};
      std::memcpy(last, data + blocks * kBlock, rest);
      absorb(last);
    }
  }

  uint64_t value() const {
    uint64_t out = kRoot;
    for (uint64_t lane : lanes_) out = mix(out, lane);
    return mix(out, total_);
  }

 private:
  static constexpr std::size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t);

  void absorb(const std::byte* block) {
    uint64_t words[kLanes];
    std::memcpy(words, block, kBlock);
    for (std::size_t i = 0; i < kLanes; ++i) lanes_[i] = mix(lanes_[i], words[i]);
  }

  uint64_t lanes_[kLanes] = {kRoot,     kRoot + 1, kRoot + 2, kRoot + 3,
                             kRoot + 4, kRoot + 5, kRoot + 6, kRoot + 7};
  uint64_t total_ = 0;
};

}  // namespace

uint64_t fingerprint(std::span<const std::byte> bytes) {
  Hash hash;
  hash.update(bytes.data(), bytes.size());
  return hash.value();
}

uint64_t fingerprint(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "fingerprint needs a contiguous tensor");
  torch::NoGradGuard no_grad;
  constexpr int64_t kPiece = int64_t{1} << 22;  // elements: bounds the copy from the device
  Hash hash;
  torch::Tensor flat = tensor.detach().view({-1});
  for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
    int64_t count = std::min(kPiece, flat.numel() - begin);
    torch::Tensor piece = flat.narrow(0, begin, count).cpu();
    hash.update(static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes());
  }
  return hash.value();
}

}  // namespace lockstep

#include "dist/collectives/mesh_sum.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

// Bytes that are added up at a time: several addends of them fit the L2 cache.
constexpr std::size_t kPieceBytes = 128 << 10;

}  // namespace

std::size_t mesh_bound(std::size_t bytes, std::size_t i, std::size_t n) {
  constexpr std::size_t kCacheLine = 64;
  return i == n ? bytes : bytes / kCacheLine * i / n * kCacheLine;
}

MeshSum::MeshSum(uint64_t number, std::span<std::byte> data, const Summation& summation,
                 std::shared_ptr<MeshRequest> request)
    : number_(number), data_(data), summation_(summation), request_(std::move(request)) {}

void MeshSum::lay_out(int me, int members, std::unique_ptr<Buffer> buffer) {
  const auto n = static_cast<std::size_t>(members);
  me_ = me;
  buffer_ = std::move(buffer);
  for (Moved* moved : {&sent_, &received_}) {
    for (auto& bytes : *moved) bytes.assign(n, 0);
  }
  addends_.assign(n, nullptr);
  own_ = direct() ? data_ : slice(me);
  if (buffer_->size() < own_.size() * (n - 1)) buffer_->resize(own_.size() * (n - 1));
  std::byte* at = buffer_->data();
  for (int member = 0; member < members; ++member) {
    addends_[member] = member == me ? own_.data() : at;
    if (member != me) at += own_.size();
  }
}

std::span<std::byte> MeshSum::slice(int member) const {
  const auto m = static_cast<std::size_t>(member);
  const std::size_t begin = mesh_bound(data_.size(), m, addends_.size());
  return data_.subspan(begin, mesh_bound(data_.size(), m + 1, addends_.size()) - begin);
}

std::span<const std::byte> MeshSum::outgoing(MeshPhase phase, int member) const {
  if (phase == MeshPhase::kResult) return own_;
  return direct() ? data_ : slice(member);
}

std::span<std::byte> MeshSum::incoming(MeshPhase phase, int member) const {
  if (phase == MeshPhase::kResult) return slice(member);
  return {addends_[member], own_.size()};
}

bool MeshSum::is_received(MeshPhase phase, int member) const {
  return received_[index(phase)][member] == incoming(phase, member).size();
}

bool MeshSum::is_sent(MeshPhase phase, int member) const {
  return sent_[index(phase)][member] == outgoing(phase, member).size();
}

bool MeshSum::add_up() {
  if (added_) return false;
  for (int member = 0; member < members(); ++member) {
    if (member == me_) continue;
    if (!is_received(MeshPhase::kAddends, member)) return false;
    // The sum overwrites the addend.
    if (direct() && !is_sent(MeshPhase::kAddends, member)) return false;
  }
  std::vector<const void*> inputs(addends_.size());
  for (std::size_t begin = 0; begin < own_.size(); begin += kPieceBytes) {
    for (std::size_t m = 0; m < inputs.size(); ++m) inputs[m] = addends_[m] + begin;
    const std::size_t bytes = std::min(kPieceBytes, own_.size() - begin);
    summation_.sum(inputs.data(), members(), own_.data() + begin,
                   static_cast<int64_t>(bytes / summation_.element_bytes));
  }
  added_ = true;
  return true;
}

bool MeshSum::is_done_with(int member) const {
  for (const MeshPhase phase : {MeshPhase::kAddends, MeshPhase::kResult}) {
    if (direct() && phase == MeshPhase::kResult) continue;
    if (!is_received(phase, member) || !is_sent(phase, member)) return false;
  }
  return true;
}

bool MeshSum::is_done() const {
  if (!added_) return false;
  for (int member = 0; member < members(); ++member) {
    if (member != me_ && !is_done_with(member)) return false;
  }
  return true;
}

int MeshSum::late_member() const {
  int late = me_ == 0 ? 1 : 0;
  for (int member = 0; member < members(); ++member) {
    if (member != me_ && !is_done_with(member)) late = member;
  }
  return late;
}

std::size_t MeshSum::total(const Moved& bytes) {
  std::size_t out = 0;
  for (const auto& phase : bytes) out = std::reduce(phase.begin(), phase.end(), out);
  return out;
}

}  // namespace lockstep

// One sum of a mesh (dist/collectives/mesh.h) as one of its members sees it: which bytes go to
// which other member, where those of others arrive, and what has passed so far. It uses no sockets.
//
// Addends go to the member that adds them up, results back to all. With whole arrays (`direct`)
// every member adds up everything and there are no results to send.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "dist/collectives/local_group.h"

namespace lockstep {

// What Mesh::start_sum() was asked for; it consists of one MeshSum or several, each of a part of
// the data.
struct MeshRequest {
  bool direct = true;
  std::size_t bytes = 0;
  std::size_t left = 0;  // sums that are not done
  std::function<void()> finished;
  std::promise<void> promise;
};

enum class MeshPhase : uint32_t { kAddends = 0, kResult = 1 };

class MeshSum {
 public:
  using Buffer = std::vector<std::byte>;
  using Clock = std::chrono::steady_clock;

  // `number` orders the sums that a mesh has started. `data` is summed in place.
  MeshSum(uint64_t number, std::span<std::byte> data, const Summation& summation,
          std::shared_ptr<MeshRequest> request);

  // Lays out the slices of `members` members, of which this is number `me`. Others' addends arrive
  // in `buffer`, which grows as needed; take_buffer() gives it back.
  void lay_out(int me, int members, std::unique_ptr<Buffer> buffer);
  std::unique_ptr<Buffer> take_buffer() { return std::move(buffer_); }

  // What this member sends to `member`, all of it; the result only after add_up().
  std::span<const std::byte> outgoing(MeshPhase phase, int member) const;
  // Where bytes from `member` go.
  std::span<std::byte> incoming(MeshPhase phase, int member) const;
  // How many of these bytes have passed.
  std::size_t& sent(MeshPhase phase, int member) { return sent_[index(phase)][member]; }
  std::size_t& received(MeshPhase phase, int member) { return received_[index(phase)][member]; }

  // Adds up once everything for it is there; true when this call did so.
  bool add_up();
  bool is_done() const;
  // Whether `member` has everything of this one, and this one everything of it.
  bool is_done_with(int member) const;
  // A member from which bytes are missing, else any other than this one.
  int late_member() const;

  uint64_t number() const { return number_; }
  std::size_t element_bytes() const { return summation_.element_bytes; }
  MeshRequest& request() const { return *request_; }
  bool direct() const { return request_->direct; }
  Clock::time_point started() const { return started_; }
  std::size_t sent_bytes() const { return total(sent_); }
  std::size_t received_bytes() const { return total(received_); }

  bool progressed = false;  // the mesh's mark: bytes moved since it last looked

 private:
  using Moved = std::array<std::vector<std::size_t>, 2>;  // by phase and member

  static std::size_t index(MeshPhase phase) { return static_cast<std::size_t>(phase); }
  static std::size_t total(const Moved& bytes);
  std::span<std::byte> slice(int member) const;
  int members() const { return static_cast<int>(addends_.size()); }
  bool is_received(MeshPhase phase, int member) const;
  bool is_sent(MeshPhase phase, int member) const;

  uint64_t number_;
  std::span<std::byte> data_;
  Summation summation_;
  std::shared_ptr<MeshRequest> request_;
  Clock::time_point started_ = Clock::now();
  int me_ = 0;
  Moved sent_, received_;
  std::vector<std::byte*> addends_;  // by member, as long as own_
  std::span<std::byte> own_;         // what this member adds up
  std::unique_ptr<Buffer> buffer_;
  bool added_ = false;
};

// Returns where part `i` of `n` begins in `bytes`, at a cache line; the last one ends at part n.
std::size_t mesh_bound(std::size_t bytes, std::size_t i, std::size_t n);

}  // namespace lockstep

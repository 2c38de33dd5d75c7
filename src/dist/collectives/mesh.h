// Runs all-reduce sums between machines over TCP, with one rank of each machine
// connected to each other one.
//
// Two machines send each other the whole array and add up both (one network delay). More machines
// do so with small arrays; they cut larger ones into one slice per member, which that member adds
// up and sends to all others (two delays, 2 (n - 1) / n times the bytes). A ring takes 2 (n - 1)
// delays. Several sums may run at once, so that many small ones together cost one delay. Large ones
// are cut into parts, each a sum of its own, whose result goes out while addends of later parts
// still come. The first of the parallel streams takes the next part that has room: a long path is
// filled by more than one TCP window, and a stream that lost packets holds nobody up. Small sums
// stay on one stream, whose window would close if it were idle. Sums are taken in pairs of
// neighbours (kernels/kernel_table.h), with one rounding for 16-bit types, so the bits do not
// depend on how an array is cut.
//
// A separate thread moves the bytes and adds up what has arrived while the rest is in transit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dist/account/moved_bytes.h"
#include "dist/collectives/local_group.h"
#include "dist/collectives/mesh_links.h"
#include "dist/collectives/mesh_sum.h"

namespace lockstep {

class Mesh {
 public:
  // Owns the sockets that connect_mesh() returned.
  Mesh(MeshMembers members, std::vector<std::vector<int>> sockets);
  // Sums still running throw.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Limits the time of one sum, from its start.
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  // Counts in `moved` the payload sent and received from now on. `moved` must outlive this.
  void count_in(MovedBytes& moved) { moved_ = &moved; }

  // Sums `data` in place. All members start the same sums in the same order. `data` must not
  // be touched until the future is ready. The future throws std::runtime_error that names the
  // rank whose connection broke or that is late. On success the mesh's thread calls
  // `finished` before that.
  std::shared_future<void> start_sum(std::span<std::byte> data, const Summation& summation,
                                     std::function<void()> finished = {});

  // Ends all running sums, for the other members too.
  void give_up();

 private:
  struct Link;     // one connection
  struct Message;  // to one member

  void run();
  void begin_added();
  void begin(const std::shared_ptr<MeshSum>& sum);
  void send_to_all(const std::shared_ptr<MeshSum>& sum, MeshPhase phase);
  void send_some(Link& link);
  void receive_some(Link& link);
  bool receive_header(Link& link);
  std::deque<std::shared_ptr<MeshSum>>::iterator place_of(uint64_t number);
  void note_progress(const std::shared_ptr<MeshSum>& sum);
  void advance_progressed();
  void tell_finished(const MeshSum& sum);
  void look_at_clock();
  void fail(const std::string& why);
  void note_broken(Link& link, ssize_t result) const;
  void look_at_links() const;
  void wake();

  MeshMembers members_;
  std::vector<Link> links_;  // ordered by stream
  std::atomic<std::chrono::nanoseconds> timeout_{std::chrono::hours{1}};
  int event_ = -1;  // an eventfd that wakes the thread
  std::atomic<MovedBytes*> moved_{nullptr};

  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<MeshSum>> added_;
  uint64_t next_ = 0;  // sums started so far
  bool stopping_ = false;
  std::string failure_;  // when not empty, no further sum succeeds

  // Only the thread uses what follows.
  std::vector<std::deque<Message>> waiting_;          // by member: to it, ordered by number
  std::deque<std::shared_ptr<MeshSum>> running_;      // ordered by number
  std::vector<std::shared_ptr<MeshSum>> progressed_;  // of which bytes were moved
  std::vector<std::unique_ptr<MeshSum::Buffer>> spare_;
  std::thread thread_;  // last: uses all the others
};

}  // namespace lockstep

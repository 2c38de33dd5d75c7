// Sums between machines over TCP: one rank of each machine, each connected with each.
//
// Two machines send each other the whole array and add up both (one delay of the network). More do
// so with small arrays; larger ones are cut into a slice a member, which adds it up and hands it
// round (two delays, 2 (n - 1) / n times the bytes). A ring takes 2 (n - 1) delays. Several sums
// may be under way at once, each on one of the parallel streams, so that many small ones cost one
// delay together and long ways are filled by more than one TCP window. Sums are taken in the order
// of the members, with one rounding for 16-bit types, so the bits do not depend on how an array is
// cut.
//
// A thread of its own moves the bytes and adds up what is there while the rest is on its way.
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

namespace lockstep {

class Mesh {
 public:
  // Owns the sockets, as connect_mesh() gives them.
  Mesh(MeshMembers members, std::vector<std::vector<int>> sockets);
  // Sums that are under way throw.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Of one sum, from its start.
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  // Payload that it sends and receives from now on; outlives this.
  void count_in(MovedBytes& moved) { moved_ = &moved; }

  // In place. All members start the same sums in the same order. `data` must stay as it is until
  // the future is ready. It throws std::runtime_error that names the rank whose connection broke,
  // or that is late. `finished` is called before, on the mesh's thread, when all went well.
  std::shared_future<void> start_sum(std::span<std::byte> data, const Summation& summation,
                                     std::function<void()> finished = {});

  // Ends what is under way, also for the others.
  void give_up();

 private:
  struct Sum;   // one that is under way
  struct Link;  // one connection
  struct Message;

  void run();
  void begin_added();
  void begin(const std::shared_ptr<Sum>& sum);
  void send_some(Link& link);
  void receive_some(Link& link);
  bool receive_header(Link& link);
  void advance(Sum& sum);
  void add_up(Sum& sum, std::size_t end);
  void finish_done();
  void tell_finished(const Sum& sum);
  void look_at_clock();
  void fail(const std::string& why);
  [[noreturn]] void throw_broken(const Link& link, ssize_t result) const;
  void wake();

  MeshMembers members_;
  std::vector<Link> links_;  // stream by stream
  std::atomic<std::chrono::nanoseconds> timeout_{std::chrono::hours{1}};
  int event_ = -1;  // an eventfd that wakes the thread
  std::atomic<MovedBytes*> moved_{nullptr};

  std::mutex mutex_;  // of what follows
  std::vector<std::shared_ptr<Sum>> added_;
  uint64_t next_ = 0;  // sums started so far
  bool stopping_ = false;
  std::string failure_;  // when not empty, no more sums

  // The thread's own.
  std::deque<std::shared_ptr<Sum>> running_;                    // in their order
  std::vector<std::unique_ptr<std::vector<std::byte>>> spare_;  // buffers, to be used again
  std::thread thread_;                                          // last: it uses all the others
};

}  // namespace lockstep

// Brings the images of shards that this machine lacks from machines that have them, in the order in
// which coming batches need them, and keeps them in an ImageCache. One thread a peer asks ahead;
// who reads an image waits only while it is not there yet. Every image is checked against its hash.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "data/images/cache_book.h"
#include "data/images/image_cache.h"
#include "data/images/shard_images.h"
#include "dist/pieces/piece_client.h"

namespace lockstep {

class ImageFetcher {
 public:
  struct Peer {
    std::string host;     // for messages
    std::string meeting;  // of its PieceServer, whose pieces are images: {file 0, at: index}
  };
  struct Sources {
    std::vector<Peer> peers;
    std::vector<std::vector<int>> holders;  // by shard: the peers that have it
    Token secret = {};                      // of the attempt
  };
  // What a waiting get() does meanwhile, on its own thread; both may throw, both may be empty.
  struct Watch {
    std::function<void()> look;                        // now and then
    std::function<void(const std::string& why)> lost;  // the last peer that has the image is lost
  };
  struct Amounts {
    int64_t images = 0, bytes = 0;  // that came from peers
  };

  // `set` must outlive it. `limit`: bytes that are kept, 0: all. Throws MachineError when the disk
  // cannot take what is missing.
  ImageFetcher(const ShardImages& set, std::unique_ptr<ImageCache> cache, Sources sources,
               int64_t limit);
  ~ImageFetcher();  // ends all calls of get()
  ImageFetcher(const ImageFetcher&) = delete;
  ImageFetcher& operator=(const ImageFetcher&) = delete;

  // The next images that get() will be asked for, in that order; images that are here do not count.
  void expect(std::span<const int64_t> images);

  // Returns the bytes of an image, in `space` unless its shard is here. Throws MachineError when no
  // peer that has it is left, and DataError when the last of them does not give it, or gives other
  // bytes than the hash says.
  std::span<const std::byte> get(int64_t image, std::vector<std::byte>& space, const Watch& watch);
  void stop();  // ends the threads and all calls of get()

  Amounts fetched() const;

 private:
  enum class State : uint8_t { kAbsent, kQueued, kAsked, kHere, kFailed };
  struct Line {  // to a peer
    Peer peer;
    std::deque<int64_t> queue;  // to ask for; entries that are not kQueued any more do not count
    bool lost = false;
    std::thread thread;
  };
  struct Failure {
    std::vector<int> by;  // peers that did not give it
    std::optional<Error> error;
    bool lost = false;  // the last of them is not there any more
  };
  void check_space() const;
  void run(int line);
  void converse(int line, std::deque<int64_t>& asked);
  std::optional<int64_t> take(Line& line);
  void store(int line, int64_t image, const std::vector<std::byte>& bytes);
  void want();
  void queue(int64_t image, bool first);
  void refused(int line, int64_t image, const Error& error);
  void lose(int line, const std::deque<int64_t>& asked, const Error& error);
  bool read_cached(int64_t image, std::vector<std::byte>& space, bool unchecked) const;
  void read(std::unique_lock<std::mutex>& lock, int64_t image, std::vector<std::byte>& space,
            const Watch& watch);
  void fail(std::unique_lock<std::mutex>& lock, int64_t image, const Watch& watch);
  void drop_what_is_too_much();
  Error disk_error(const Error& error) const;

  const ShardImages& set_;
  std::unique_ptr<ImageCache> cache_;
  std::vector<std::vector<int>> holders_;
  const Token secret_;
  int64_t limit_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  CacheBook book_;
  std::vector<State> states_;    // by image
  std::vector<bool> unchecked_;  // by image: it comes from an earlier run
  std::map<int64_t, Failure> failures_;
  Amounts fetched_;
  std::vector<std::unique_ptr<Line>> lines_;  // last: its threads use all the others
};

}  // namespace lockstep

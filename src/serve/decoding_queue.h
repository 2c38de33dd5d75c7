// Translates the lines of many requests at once. Worker threads take batches out of all lines that
// wait, whichever request they belong to: lines of similar length, bounded by tokens. With packed
// weights no translation depends on its batch in any bit (tasks/beam_search.h).
//
// Order: every line has a turn, that of the last line served plus its number in its request, and a
// batch begins with the earliest turn (start-time fair queueing, Goyal et al. 1996, with lines as
// the unit). So a request of thousands of lines does not keep one of a single line waiting, and is
// not kept waiting by many of these.
//
// Waiting: a worker with less than a full batch waits up to Options::wait for as many requests as
// were here a moment ago: clients that send their next request when they have the answer to the one
// before then come into one batch. Without others there is nothing to wait for: a single client
// never waits, nor does a request after a pause.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

struct TranslatedLine {
  std::string text;
  double score = 0;
  int64_t pieces = 0;
};

// What decodes: called from several threads at a time.
class LineDecoder {
 public:
  virtual ~LineDecoder() = default;
  virtual void prepare_thread() const {}  // once in each worker, before anything else
  virtual std::vector<int32_t> encode(const std::string& line) const = 0;
  // Returns the translations of every source, best first, at least one of each.
  virtual std::vector<std::vector<TranslatedLine>> decode(
      const std::vector<std::vector<int32_t>>& sources) const = 0;
};

class DecodingQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    int64_t workers = 1;
    int64_t batch_tokens =
        1024;              // source tokens of a batch, </s> and padding to the longest counted
    int64_t lines = 4096;  // that wait at most
    std::chrono::microseconds wait{3000};
  };
  // A request whose lines are all translated, or of which decoding threw.
  struct Finished {
    uint64_t job = 0;
    std::vector<std::vector<TranslatedLine>> lines;  // in the order of the request's
    std::string failure;                             // empty: none
  };
  struct Figures {
    int64_t waiting = 0, decoding = 0;  // lines now
    int64_t lines = 0, pieces = 0;      // translated so far, and pieces of their best translations
    int64_t batches = 0, shared_batches = 0;  // the latter: of several requests
    double lines_per_second = 0;              // of all workers, of late; 0: not known yet
  };

  // `wake` is called in a worker when take_finished() has something.
  DecodingQueue(const LineDecoder& decoder, const Options& options, std::function<void()> wake);
  ~DecodingQueue();  // after the batches under way
  DecodingQueue(const DecodingQueue&) = delete;
  DecodingQueue& operator=(const DecodingQueue&) = delete;

  // Returns false, and takes nothing, when the lines do not fit beside those that wait. REQUIRES at
  // most Options::lines lines, and a job that is not here.
  bool submit(uint64_t job, std::vector<std::string> lines);
  // Drops what of the job is not being decoded yet.
  void cancel(uint64_t job);
  std::vector<Finished> take_finished();
  Figures figures() const;

 private:
  struct Line {
    uint64_t job = 0;
    std::size_t number = 0;  // in its request
    uint64_t turn = 0;
    Clock::time_point arrived;
    std::vector<int32_t> ids;
  };
  struct Raw {
    Line line;
    std::string text;
  };
  struct Job {
    std::size_t left = 0;
    std::vector<std::vector<TranslatedLine>> lines;
  };
  using Waiting = std::multimap<std::size_t, Line>;  // by number of ids

  void work();
  void encode_some(std::unique_lock<std::mutex>& lock);
  bool wait_for_others(std::unique_lock<std::mutex>& lock);
  std::vector<Line> choose_batch();
  void decode_batch(std::vector<Line> batch, std::unique_lock<std::mutex>& lock);
  void deliver(std::vector<Line>& batch, std::vector<std::vector<TranslatedLine>>& translated);
  void fail(const std::vector<Line>& batch, const std::string& why);

  const LineDecoder& decoder_;
  Options options_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::multimap<uint64_t, Raw> raw_;  // not encoded yet, by turn
  Waiting waiting_;
  std::map<uint64_t, Job> jobs_;
  std::vector<Finished> finished_;
  uint64_t turn_ = 0;         // of the last line that began a batch
  int64_t busy_ = 0;          // workers that decode
  std::size_t together_ = 0;  // jobs that were here when the last batch began
  Clock::time_point last_end_;
  Figures figures_;
  std::vector<std::thread> workers_;
};

}  // namespace lockstep

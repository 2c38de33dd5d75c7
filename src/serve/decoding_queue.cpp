#include "serve/decoding_queue.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "base/log.h"

namespace lockstep {

namespace {

// A batch of fewer tokens takes hardly less time than one of so many: idle workers share out what
// waits, but not in smaller parts.
constexpr std::size_t kLeastShare = 64;
constexpr std::size_t kEncodedAtOnce = 256;  // lines
constexpr double kNewestWeight = 0.2;        // of a batch in the rate of late

}  // namespace

DecodingQueue::DecodingQueue(const LineDecoder& decoder, const Options& options,
                             std::function<void()> wake)
    : decoder_(decoder), options_(options), wake_(std::move(wake)) {
  for (int64_t i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
}

DecodingQueue::~DecodingQueue() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool DecodingQueue::submit(uint64_t job, std::vector<std::string> lines) {
  const auto count = std::ssize(lines);
  {
    std::lock_guard lock(mutex_);
    if (figures_.waiting + count > options_.lines) return false;
    Job& added = jobs_[job];
    added.left = lines.size();
    added.lines.resize(lines.size());
    if (lines.empty()) {
      finished_.push_back({job, {}, ""});
      jobs_.erase(job);
      wake_();
      return true;
    }
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      Line line{
          .job = job, .number = i, .turn = turn_ + i, .sequence = sequence_++, .arrived = now};
      raw_.emplace(turn_ + i, Raw{std::move(line), std::move(lines[i])});
    }
    figures_.waiting += count;
  }
  changed_.notify_all();
  return true;
}

void DecodingQueue::cancel(uint64_t job) {
  std::lock_guard lock(mutex_);
  const auto dropped = static_cast<int64_t>(
      std::erase_if(raw_, [&](const auto& item) { return item.second.line.job == job; }) +
      std::erase_if(waiting_, [&](const auto& item) { return item.second.job == job; }));
  figures_.waiting -= dropped;
  jobs_.erase(job);
}

std::vector<DecodingQueue::Finished> DecodingQueue::take_finished() {
  std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

DecodingQueue::Figures DecodingQueue::figures() const {
  std::lock_guard lock(mutex_);
  return figures_;
}

void DecodingQueue::work() {
  decoder_.prepare_thread();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !raw_.empty() || !waiting_.empty(); });
    if (stopping_) return;
    if (!raw_.empty()) {
      encode_some(lock);
    } else if (!wait_for_others(lock)) {
      decode_batch(choose_batch(), lock);
    }
  }
}

// Encodes lines in the order of their turns, outside the lock.
void DecodingQueue::encode_some(std::unique_lock<std::mutex>& lock) {
  std::vector<Raw> taken;
  while (!raw_.empty() && taken.size() < kEncodedAtOnce) {
    taken.push_back(std::move(raw_.begin()->second));
    raw_.erase(raw_.begin());
  }
  lock.unlock();
  std::string failure;
  try {
    for (Raw& raw : taken) raw.line.ids = decoder_.encode(raw.text);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  std::vector<Line> failed;
  for (Raw& raw : taken) {
    if (!jobs_.contains(raw.line.job)) {  // cancelled meanwhile
      --figures_.waiting;
    } else if (failure.empty()) {
      const std::size_t length = raw.line.ids.size();
      waiting_.emplace(length, std::move(raw.line));
    } else {
      --figures_.waiting;
      failed.push_back(std::move(raw.line));
    }
  }
  if (!failed.empty()) fail(failed, failure);
  changed_.notify_all();
}

// Returns whether it waited: what there is to do may be another thing now.
bool DecodingQueue::wait_for_others(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point now = Clock::now();
  if (busy_ == 0 && now - last_end_ > options_.wait) together_ = 0;
  if (jobs_.size() >= together_) return false;
  std::size_t tokens = 0;
  Clock::time_point oldest = now;
  for (const auto& [length, line] : waiting_) {
    tokens += length + 1;
    oldest = std::min(oldest, line.arrived);
  }
  if (tokens >= static_cast<std::size_t>(options_.batch_tokens)) return false;
  // What came during the last batch has waited for that one, not for others.
  const Clock::time_point until = std::max(oldest, last_end_) + options_.wait;
  if (now >= until) return false;
  changed_.wait_until(lock, until);
  return true;
}

// Takes a batch out of waiting_, which is not empty: the line whose turn it is, and around it lines
// of the most similar lengths.
std::vector<DecodingQueue::Line> DecodingQueue::choose_batch() {
  Waiting::iterator first = waiting_.begin();
  for (auto line = waiting_.begin(); line != waiting_.end(); ++line) {
    if (std::pair(line->second.turn, line->second.sequence) <
        std::pair(first->second.turn, first->second.sequence)) {
      first = line;
    }
  }
  const auto idle = static_cast<std::size_t>(options_.workers - busy_);
  const auto most = static_cast<std::size_t>(options_.batch_tokens);
  const std::size_t share = (waiting_.size() + idle - 1) / idle;  // lines
  turn_ = std::max(turn_ + 1, first->second.turn);
  const std::size_t length = first->first;
  std::size_t longest = length + 1, count = 1;
  Waiting::iterator begin = first, end = std::next(first);
  while (begin != waiting_.begin() || end != waiting_.end()) {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    const std::size_t shorter =
        begin == waiting_.begin() ? kNone : length - std::prev(begin)->first;
    const std::size_t longer = end == waiting_.end() ? kNone : end->first - length;
    if (longer < shorter) longest = end->first + 1;
    if ((count + 1) * longest > most) break;
    if (count >= share && (count + 1) * longest > kLeastShare) break;
    ++count;
    if (longer < shorter) {
      ++end;
    } else {
      --begin;
    }
  }
  std::vector<Line> batch;
  for (auto line = begin; line != end; ++line) batch.push_back(std::move(line->second));
  waiting_.erase(begin, end);
  return batch;
}

void DecodingQueue::decode_batch(std::vector<Line> batch, std::unique_lock<std::mutex>& lock) {
  std::set<uint64_t> jobs;
  std::vector<std::vector<int32_t>> sources;
  for (Line& line : batch) {
    jobs.insert(line.job);
    sources.push_back(std::move(line.ids));
  }
  const auto count = std::ssize(batch);
  ++busy_;
  figures_.waiting -= count;
  figures_.decoding += count;
  ++figures_.batches;
  if (jobs.size() > 1) ++figures_.shared_batches;
  lock.unlock();
  const Clock::time_point start = Clock::now();
  std::vector<std::vector<TranslatedLine>> translated;
  std::string failure;
  try {
    translated = decoder_.decode(sources);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  lock.lock();
  --busy_;
  together_ = jobs_.size();  // not when it began: others have come meanwhile
  last_end_ = Clock::now();
  figures_.decoding -= count;
  const double rate = static_cast<double>(count * options_.workers) / std::max(seconds, 1e-6);
  figures_.lines_per_second =
      figures_.lines_per_second == 0
          ? rate
          : figures_.lines_per_second + kNewestWeight * (rate - figures_.lines_per_second);
  if (failure.empty()) {
    deliver(batch, translated);
  } else {
    fail(batch, failure);
  }
}

void DecodingQueue::deliver(std::vector<Line>& batch,
                            std::vector<std::vector<TranslatedLine>>& translated) {
  const std::size_t before = finished_.size();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    ++figures_.lines;
    figures_.pieces += translated[i].front().pieces;
    const auto job = jobs_.find(batch[i].job);
    if (job == jobs_.end()) continue;  // cancelled meanwhile
    job->second.lines[batch[i].number] = std::move(translated[i]);
    if (--job->second.left > 0) continue;
    finished_.push_back({job->first, std::move(job->second.lines), ""});
    jobs_.erase(job);
  }
  if (finished_.size() > before) wake_();
}

// Ends the jobs of those lines; what is left of them is dropped.
void DecodingQueue::fail(const std::vector<Line>& batch, const std::string& why) {
  log_warning("decoding failed: {}", why);
  for (const Line& line : batch) {
    const auto job = jobs_.find(line.job);
    if (job == jobs_.end()) continue;
    finished_.push_back({line.job, {}, why});
    figures_.waiting -= static_cast<int64_t>(
        std::erase_if(raw_, [&](const auto& item) { return item.second.line.job == line.job; }) +
        std::erase_if(waiting_, [&](const auto& item) { return item.second.job == line.job; }));
    jobs_.erase(job);
  }
  wake_();
}

}  // namespace lockstep

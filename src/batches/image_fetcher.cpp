#include "batches/image_fetcher.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kImagesAskedAhead = 64;      // pieces on their way from a peer, at most
constexpr int64_t kBytesAhead = int64_t{4} << 20;  // and as many bytes, but one piece at least
constexpr milliseconds kPeerSilence{20'000};       // of a peer that counts as lost after it
constexpr milliseconds kLook{100};
constexpr int64_t kSpareBytes = int64_t{64} << 20;  // that are left on the disk

std::vector<uint32_t> costs_of(const ShardImages& set) {
  std::vector<uint32_t> out;
  out.reserve(static_cast<std::size_t>(set.size()));
  for (int64_t i = 0; i < set.size(); ++i) out.push_back(ImageCache::cost(set.place(i)));
  return out;
}

}  // namespace

ImageFetcher::ImageFetcher(const ShardImages& set, std::unique_ptr<ImageCache> cache,
                           Sources sources, int64_t limit)
    : set_(set),
      cache_(std::move(cache)),
      holders_(std::move(sources.holders)),
      secret_(sources.secret),
      limit_(limit),
      book_(costs_of(set), limit),
      states_(static_cast<std::size_t>(set.size()), State::kAbsent),
      unchecked_(states_.size()) {
  for (int64_t image : cache_->found()) {
    states_[image] = State::kHere;
    unchecked_[image] = true;
    book_.arrived(image);
  }
  drop_what_is_too_much();
  check_space();
  for (Peer& peer : sources.peers) {
    lines_.push_back(std::make_unique<Line>());
    lines_.back()->peer = std::move(peer);
  }
  sigset_t all, before;  // signals are for the program's main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    lines_[i]->thread = std::thread([this, i] { run(static_cast<int>(i)); });
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ImageFetcher::~ImageFetcher() { stop(); }

void ImageFetcher::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& line : lines_) {
    if (line->thread.joinable()) line->thread.join();
  }
}

// Says at the start what would fail after hours.
void ImageFetcher::check_space() const {
  int64_t missing = 0;
  for (int64_t i = 0; i < set_.size(); ++i) {
    if (!set_.is_here(i) && states_[i] != State::kHere) missing += ImageCache::cost(set_.place(i));
  }
  const int64_t needed = limit_ == 0 ? missing : std::min(missing, limit_ - book_.bytes());
  const int64_t room = cache_->free_bytes() - kSpareBytes;
  if (needed <= room) return;
  MachineError error(
      "{}: its disk has room for {} more, the images that other machines send take {}",
      cache_->folder().string(), short_bytes(static_cast<double>(std::max<int64_t>(room, 0))),
      short_bytes(static_cast<double>(needed)));
  error.set_advice(fmt::format("images.cache_bytes={}, or images.cache=FOLDER on another disk",
                               std::max<int64_t>(room, 0) + book_.bytes()));
  throw error;
}

Error ImageFetcher::disk_error(const Error& error) const {
  if (cache_->free_bytes() > kSpareBytes) return error;
  MachineError full("{}: the disk is full after {} of images that other machines sent",
                    cache_->folder().string(), short_bytes(static_cast<double>(book_.bytes())));
  full.set_cause(error.what());
  full.set_advice(fmt::format("images.cache_bytes={}, or images.cache=FOLDER on another disk",
                              book_.bytes() * 9 / 10));
  return full;
}

void ImageFetcher::expect(std::span<const int64_t> images) {
  {
    std::lock_guard lock(mutex_);
    for (int64_t image : images) {
      if (!set_.is_here(image)) book_.expect(image);
    }
    want();
  }
  changed_.notify_all();
}

// Queues expected images as far as there is room for them. REQUIRES mutex_, as all below do.
void ImageFetcher::want() {
  while (const std::optional<int64_t> image = book_.want_next()) {
    if (states_[*image] == State::kAbsent) queue(*image, false);
  }
}

// Any of the peers that have the image may ask for it, unless it did not give it before.
void ImageFetcher::queue(int64_t image, bool first) {
  const auto failure = failures_.find(image);
  bool any = false;
  for (int holder : holders_[set_.place(image).shard]) {
    const bool failed = failure != failures_.end() &&
                        std::find(failure->second.by.begin(), failure->second.by.end(), holder) !=
                            failure->second.by.end();
    if (failed || lines_[holder]->lost) continue;
    std::deque<int64_t>& queue = lines_[holder]->queue;
    first ? queue.push_front(image) : queue.push_back(image);
    any = true;
  }
  states_[image] = any ? State::kQueued : State::kFailed;
}

std::optional<int64_t> ImageFetcher::take(Line& line) {
  while (!line.queue.empty()) {
    const int64_t image = line.queue.front();
    line.queue.pop_front();
    if (states_[image] != State::kQueued) continue;
    states_[image] = State::kAsked;
    return image;
  }
  return std::nullopt;
}

void ImageFetcher::run(int line) {
  std::deque<int64_t> asked;
  try {
    converse(line, asked);
  } catch (const Error& error) {
    lose(line, asked, error);
  }
}

// Asks for what is queued, some pieces ahead, until it is stopped. `asked`: what is on its way.
void ImageFetcher::converse(int line, std::deque<int64_t>& asked) {
  Line& mine = *lines_[line];
  std::optional<PieceClient> client;
  std::vector<std::byte> bytes;
  int64_t bytes_asked = 0;
  auto piece_of = [&](int64_t image) {
    return DataPiece{.bytes = set_.place(image).bytes, .at = static_cast<uint64_t>(image)};
  };
  while (!stopping_) {
    const std::size_t before = asked.size();
    {
      std::unique_lock lock(mutex_);
      auto more = [&] {
        return asked.size() < kImagesAskedAhead && (asked.empty() || bytes_asked < kBytesAhead);
      };
      while (more()) {
        const std::optional<int64_t> image = take(mine);
        if (!image) break;
        asked.push_back(*image);
        bytes_asked += set_.place(*image).bytes;
      }
      if (asked.empty()) {
        changed_.wait(lock, [&] { return stopping_ || !mine.queue.empty(); });
        continue;
      }
    }
    if (!client) {
      client.emplace(mine.peer.meeting, PieceClient::Options{.host = mine.peer.host,
                                                             .secret = secret_,
                                                             .silence = kPeerSilence,
                                                             .stopping = stopping_});
    }
    for (std::size_t i = before; i < asked.size(); ++i) client->ask(piece_of(asked[i]));
    const int64_t image = asked.front();
    const std::string refusal = client->receive(piece_of(image), bytes);
    asked.pop_front();
    bytes_asked -= set_.place(image).bytes;
    if (!refusal.empty()) {
      refused(line, image, DataError("{}: {}", mine.peer.host, refusal));
    } else {
      store(line, image, bytes);
    }
  }
}

void ImageFetcher::store(int line, int64_t image, const std::vector<std::byte>& bytes) {
  if (!set_.matches(image, bytes)) {
    DataError error("{} of {} on {} differs from its hash in the prepared data", set_.name(image),
                    set_.shard_name(set_.place(image).shard), lines_[line]->peer.host);
    error.set_advice("the shard there changed or is damaged: bring it there again");
    log_warning("{}", error.what());
    return refused(line, image, error);
  }
  std::optional<Error> trouble;
  try {
    cache_->put(image, bytes);
  } catch (const Error& error) {
    trouble = error;
  }
  {
    std::lock_guard lock(mutex_);
    if (trouble) {
      failures_[image].error = disk_error(*trouble);
      states_[image] = State::kFailed;
    } else {
      states_[image] = State::kHere;
      ++fetched_.images;
      fetched_.bytes += std::ssize(bytes);
      book_.arrived(image);
    }
    drop_what_is_too_much();
  }
  changed_.notify_all();
}

void ImageFetcher::drop_what_is_too_much() {
  while (const std::optional<int64_t> image = book_.drop_next()) {
    states_[*image] = State::kAbsent;
    cache_->drop(*image);
  }
}

// The peer does not give the image: another one is asked.
void ImageFetcher::refused(int line, int64_t image, const Error& error) {
  {
    std::lock_guard lock(mutex_);
    failures_[image].by.push_back(line);
    failures_[image].error = error;
    failures_[image].lost = false;
    queue(image, true);
  }
  changed_.notify_all();
}

// The peer is lost for the rest of the run: what it was to give the others are asked for.
void ImageFetcher::lose(int line, const std::deque<int64_t>& asked, const Error& error) {
  {
    std::lock_guard lock(mutex_);
    Line& mine = *lines_[line];
    mine.lost = true;
    std::vector<int64_t> left(asked.begin(), asked.end());
    while (const std::optional<int64_t> image = take(mine)) left.push_back(*image);
    // Backwards, so that the first one comes to the front again.
    for (auto image = left.rbegin(); image != left.rend(); ++image) {
      failures_[*image].by.push_back(line);
      failures_[*image].error = error;
      failures_[*image].lost = true;
      queue(*image, true);
    }
  }
  changed_.notify_all();
}

// Returns false when the file does not hold what an earlier run put there.
bool ImageFetcher::read_cached(int64_t image, std::vector<std::byte>& space, bool unchecked) const {
  try {
    cache_->read(image, space);
  } catch (const DataError&) {
    return false;
  }
  return !unchecked || set_.matches(image, space);
}

// Throws why nobody gives the image.
void ImageFetcher::fail(std::unique_lock<std::mutex>& lock, int64_t image, const Watch& watch) {
  const Failure failure = failures_[image];
  lock.unlock();
  if (failure.lost && failure.error && watch.lost) watch.lost(failure.error->what());
  if (failure.error && !failure.lost) throw Error(*failure.error);
  MachineError error("{}: no machine that has {} is left", set_.name(image),
                     set_.shard_name(set_.place(image).shard));
  if (failure.error) error.set_cause(failure.error->what());
  throw error;
}

// Waits until the image is there and reads it.
void ImageFetcher::read(std::unique_lock<std::mutex>& lock, int64_t image,
                        std::vector<std::byte>& space, const Watch& watch) {
  for (;;) {
    if (stopping_) throw MachineError("{}: no longer fetched: the run ends", set_.name(image));
    if (states_[image] == State::kHere) {
      const bool unchecked = unchecked_[image];
      lock.unlock();
      const bool right = read_cached(image, space, unchecked);
      lock.lock();
      unchecked_[image] = false;
      if (right) return;
      states_[image] = State::kAbsent;
    }
    if (states_[image] == State::kFailed) fail(lock, image, watch);
    if (states_[image] == State::kAbsent) {
      queue(image, true);  // it was not expected, or there was no room for it yet
      changed_.notify_all();
      continue;
    }
    changed_.wait_for(lock, kLook);
    if (!watch.look) continue;
    lock.unlock();
    watch.look();
    lock.lock();
  }
}

std::span<const std::byte> ImageFetcher::get(int64_t image, std::vector<std::byte>& space,
                                             const Watch& watch) {
  if (set_.is_here(image)) return set_.bytes(image, space);
  std::unique_lock lock(mutex_);
  // It stays until it was read, also where there is room for nothing but what is wanted.
  book_.pin(image);
  try {
    read(lock, image, space, watch);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    book_.unpin(image);
    throw;
  }
  book_.unpin(image);
  book_.used(image);
  want();
  drop_what_is_too_much();
  lock.unlock();
  changed_.notify_all();
  return space;
}

ImageFetcher::Amounts ImageFetcher::fetched() const {
  std::lock_guard lock(mutex_);
  return fetched_;
}

}  // namespace lockstep

#include "data/parallel/pair_buckets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace lockstep {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;  // for each of up to 512 files
constexpr uint64_t kTextStream = 0x74657874;
constexpr uint64_t kPlaceStream = 0x706c616365;

// Precedes the text of a pair in a bucket file.
struct RecordHeader {
  uint64_t key;
  uint32_t source_bytes, target_bytes;
};
static_assert(sizeof(RecordHeader) == 16);

struct KeyedPair {
  uint64_t key;
  PairView pair;
};

bool in_order(const KeyedPair& a, const KeyedPair& b) {
  if (a.key != b.key) return a.key < b.key;
  int source = a.pair.source.compare(b.pair.source);
  return source != 0 ? source < 0 : a.pair.target < b.pair.target;
}

uint64_t hash_text(std::string_view text, uint64_t state) {
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t part;
    std::memcpy(&part, text.data(), 8);
    state = mix64(state ^ part);
  }
  uint64_t part = 0;
  if (!text.empty()) std::memcpy(&part, text.data(), text.size());
  return mix64(state ^ part) + text.size();
}

fs::path bucket_path(const fs::path& folder, int64_t number) {
  return folder / fmt::format("pairs-{:03}", number);
}

}  // namespace

void BucketedPairs::add(uint64_t key, PairView pair) {
  // The bucket is given by the leading bits of the key, so that buckets are in the order of keys.
  int shift = 64 - std::countr_zero(records_.size());
  std::string& record = records_[shift == 64 ? 0 : key >> shift];
  RecordHeader header{key, static_cast<uint32_t>(pair.source.size()),
                      static_cast<uint32_t>(pair.target.size())};
  record.append(reinterpret_cast<const char*>(&header), sizeof header);
  record.append(pair.source);
  record.append(pair.target);
  ++pairs_;
}

uint64_t key_of_text(PairView pair, uint64_t seed) {
  uint64_t state = combine_keys(seed, kTextStream);
  return mix64(hash_text(pair.target, hash_text(pair.source, state)));
}

uint64_t key_of_place(uint64_t part, int64_t n, uint64_t seed) {
  uint64_t place = combine_keys(part, static_cast<uint64_t>(n));
  return combine_keys(combine_keys(seed, kPlaceStream), place);
}

class BucketWriter::File {
 public:
  explicit File(fs::path path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("created");
    buffer_.reserve(kBufferBytes);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void append(std::string_view bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) flush();
    if (bytes.size() > kBufferBytes) return write(bytes);
    buffer_.append(bytes);
  }
  void flush() {
    write(buffer_);
    buffer_.clear();
  }
  void sync() {
    flush();
    if (::fsync(fd_) != 0) fail("written");
  }

 private:
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("written");
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  [[noreturn]] void fail(const char* what) const {
    throw MachineError("{}: cannot be {}: {}", path_.string(), what, std::strerror(errno));
  }

  fs::path path_;
  int fd_ = -1;
  std::string buffer_;
};

BucketWriter::BucketWriter(const fs::path& folder, int64_t buckets) {
  for (int64_t i = 0; i < buckets; ++i) {
    files_.push_back(std::make_unique<File>(bucket_path(folder, i)));
  }
}

BucketWriter::~BucketWriter() = default;

void BucketWriter::write(const BucketedPairs& pairs) {
  for (std::size_t i = 0; i < files_.size(); ++i) files_[i]->append(pairs.records()[i]);
}

void BucketWriter::finish() {
  for (std::unique_ptr<File>& file : files_) file->sync();
}

Bucket::Bucket(const fs::path& folder, int64_t number, bool drop_repeated) {
  fs::path path = bucket_path(folder, number);
  bytes_ = read_file(path);
  std::vector<KeyedPair> keyed;
  std::string_view rest = bytes_;
  while (!rest.empty()) {
    RecordHeader header;
    if (rest.size() < sizeof header) throw DataError("{}: cut off", path.string());
    std::memcpy(&header, rest.data(), sizeof header);
    rest.remove_prefix(sizeof header);
    if (rest.size() < std::size_t{header.source_bytes} + header.target_bytes) {
      throw DataError("{}: cut off", path.string());
    }
    keyed.push_back({header.key,
                     {rest.substr(0, header.source_bytes),
                      rest.substr(header.source_bytes, header.target_bytes)}});
    rest.remove_prefix(std::size_t{header.source_bytes} + header.target_bytes);
  }
  std::sort(keyed.begin(), keyed.end(), in_order);
  pairs_.reserve(keyed.size());
  for (const KeyedPair& one : keyed) {
    bool again = drop_repeated && !pairs_.empty() && pairs_.back().source == one.pair.source &&
                 pairs_.back().target == one.pair.target;
    if (again) {
      ++repeated_;
    } else {
      pairs_.push_back(one.pair);
    }
  }
}

}  // namespace lockstep

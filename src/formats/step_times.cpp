#include "formats/step_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little, "records are copied as they are");
static_assert(std::is_trivially_copyable_v<RankTimes> &&
                  sizeof(RankTimes) == kRankTimesFields * sizeof(float),
              "a rank's times are copied as they lie in memory");

constexpr std::string_view kTimesMagic = "LSTIMING";
constexpr uint32_t kTimesVersion = 1;
constexpr uint32_t kMostRanks = 1 << 20;
constexpr std::size_t kTimesFlushBytes = 64 * 1024;
constexpr std::size_t kStepHead = sizeof(int64_t) + sizeof(double);

// The first 16 bytes of the file, docs/formats.md#step-times.
struct TimesHeader {
  char magic[8];
  uint32_t version;
  uint32_t ranks;
};
static_assert(sizeof(TimesHeader) == 16);

template <typename Value>
void put(std::string& out, const Value& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns the N of "attempt_N.bin".
std::optional<int64_t> attempt_of(const fs::path& file) {
  constexpr std::string_view kBefore = "attempt_", kAfter = ".bin";
  const std::string text = file.filename().string();
  std::string_view name = text;
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return std::nullopt;
  name.remove_prefix(kBefore.size());
  if (name.size() <= kAfter.size()) return std::nullopt;
  name.remove_suffix(kAfter.size());
  int64_t value = 0;
  auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (failure != std::errc{} || end != name.data() + name.size() || value < 0) return std::nullopt;
  return value;
}

TimesHeader read_header(const fs::path& file, std::span<const std::byte> bytes) {
  TimesHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, sizeof header.magic) != kTimesMagic) {
    throw DataError("{}: not a file of step times: it does not start with \"{}\"", file.string(),
                    kTimesMagic);
  }
  if (header.version != kTimesVersion) {
    throw DataError("{}: step times of version {}, this program reads version {}", file.string(),
                    header.version, kTimesVersion);
  }
  if (header.ranks == 0 || header.ranks > kMostRanks) {
    throw DataError("{}: offset 12: {} ranks are not possible", file.string(), header.ranks);
  }
  return header;
}

// A memory-mapped file. It has no steps if its writer was killed before it wrote one.
class Table {
 public:
  explicit Table(const fs::path& file) : mapped_(file) {
    const std::span<const std::byte> bytes = mapped_.bytes();
    if (bytes.size() >= sizeof(TimesHeader)) {
      ranks_ = read_header(file, bytes).ranks;
      steps_ = (bytes.size() - sizeof(TimesHeader)) / step_bytes();
      return;
    }
    const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (kTimesMagic.starts_with(start.substr(0, kTimesMagic.size()))) return;
    throw DataError("{}: not a file of step times: it has {} bytes", file.string(), bytes.size());
  }

  std::size_t ranks() const { return ranks_; }
  std::size_t steps() const { return steps_; }
  // REQUIRES: out.ranks has ranks() elements.
  void copy(std::size_t i, StepTimes& out) const {
    const std::byte* from = mapped_.bytes().data() + sizeof(TimesHeader) + i * step_bytes();
    std::memcpy(&out.step, from, sizeof out.step);
    std::memcpy(&out.begin, from + sizeof out.step, sizeof out.begin);
    std::memcpy(out.ranks.data(), from + kStepHead, ranks_ * sizeof(RankTimes));
  }

 private:
  std::size_t step_bytes() const { return kStepHead + ranks_ * sizeof(RankTimes); }

  MappedFile mapped_;
  std::size_t ranks_ = 0, steps_ = 0;
};

}  // namespace

StepTimesWriter::StepTimesWriter(fs::path folder, int ranks)
    : folder_(std::move(folder)), ranks_(ranks) {
  if (ranks < 1) throw std::invalid_argument("step times of no rank");
}

StepTimesWriter::~StepTimesWriter() {
  try {
    flush();
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

void StepTimesWriter::create() {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder_.string(), failed.message());
  int64_t number = 1;
  const std::vector<fs::path> before = step_times_files(folder_);
  if (!before.empty()) number = *attempt_of(before.back()) + 1;
  while (descriptor_ < 0) {
    path_ = folder_ / fmt::format("attempt_{}.bin", number++);
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor_ < 0 && errno != EEXIST) {
      throw MachineError("{}: cannot be created: {}", path_.string(), std::strerror(errno));
    }
  }
  TimesHeader header{};
  std::memcpy(header.magic, kTimesMagic.data(), kTimesMagic.size());
  header.version = kTimesVersion;
  header.ranks = static_cast<uint32_t>(ranks_);
  put(pending_, header);
}

void StepTimesWriter::add(int64_t step, double begin, std::span<const RankTimes> ranks) {
  if (std::cmp_not_equal(ranks.size(), ranks_)) {
    throw std::invalid_argument(
        fmt::format("step times of {} ranks, expected {}", ranks.size(), ranks_));
  }
  if (descriptor_ < 0) create();
  put(pending_, step);
  put(pending_, begin);
  pending_.append(reinterpret_cast<const char*>(ranks.data()), ranks.size_bytes());
  if (pending_.size() >= kTimesFlushBytes) flush();
}

void StepTimesWriter::flush() {
  if (descriptor_ < 0 || pending_.empty()) return;
  const off_t whole = ::lseek(descriptor_, 0, SEEK_END);
  const std::string bytes = std::exchange(pending_, {});
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string reason = std::strerror(errno);
      if (whole == 0) put(pending_, *reinterpret_cast<const TimesHeader*>(bytes.data()));
      const bool cut = whole >= 0 && ::ftruncate(descriptor_, whole) == 0;
      throw MachineError("{}: cannot be written: {}{}", path_.string(), reason,
                         cut ? "" : "; its last step is damaged");
    }
    done += static_cast<std::size_t>(n);
  }
}

std::vector<fs::path> step_times_files(const fs::path& folder) {
  std::vector<std::pair<int64_t, fs::path>> found;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, absent)) {
    if (auto number = attempt_of(entry.path())) found.emplace_back(*number, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> out;
  for (auto& [number, path] : found) out.push_back(std::move(path));
  return out;
}

int64_t read_step_times(const fs::path& file, const std::function<void(const StepTimes&)>& f) {
  const Table table(file);
  StepTimes step;
  step.ranks.resize(table.ranks());
  for (std::size_t i = 0; i < table.steps(); ++i) {
    table.copy(i, step);
    f(step);
  }
  return static_cast<int64_t>(table.steps());
}

std::optional<StepTimesExtent> step_times_extent(const fs::path& file) {
  const Table table(file);
  if (table.steps() == 0) return std::nullopt;
  StepTimes step;
  step.ranks.resize(table.ranks());
  StepTimesExtent out{.ranks = static_cast<int>(table.ranks()),
                      .steps = static_cast<int64_t>(table.steps())};
  table.copy(0, step);
  out.first = step.step;
  table.copy(table.steps() - 1, step);
  out.last = step.step;
  return out;
}

}  // namespace lockstep

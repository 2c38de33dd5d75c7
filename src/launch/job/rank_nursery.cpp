#include "launch/job/rank_nursery.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

// What the process is told: texts, each with its length in front.
class OrderWriter {
 public:
  OrderWriter& add(const std::string& text) {
    const uint64_t size = text.size();
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes_ += text;
    return *this;
  }
  OrderWriter& add(int number) { return add(std::to_string(number)); }
  OrderWriter& add(const std::vector<std::string>& texts) {
    add(static_cast<int>(texts.size()));
    for (const std::string& text : texts) add(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class OrderReader {
 public:
  explicit OrderReader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string text() {
    uint64_t size = 0;
    if (bytes_.size() - at_ < sizeof size) throw MachineError("the orders for ranks were cut");
    std::memcpy(&size, bytes_.data() + at_, sizeof size);
    at_ += sizeof size;
    if (bytes_.size() - at_ < size) throw MachineError("the orders for ranks were cut");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  int number() { return std::stoi(text()); }
  std::vector<std::string> texts() {
    std::vector<std::string> out(static_cast<std::size_t>(number()));
    for (std::string& one : out) one = text();
    return out;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

struct BornRank {
  std::vector<std::string> words, environment;
  int output = -1, errors = -1, reports = -1, inherited = -1;
};

std::string read_orders(int descriptor) {
  std::string out;
  char bytes[65536];
  for (;;) {
    const ssize_t size = ::pread(descriptor, bytes, sizeof bytes, static_cast<off_t>(out.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw MachineError("cannot read the orders for ranks: {}", std::strerror(errno));
    if (size == 0) return out;
    out.append(bytes, static_cast<std::size_t>(size));
  }
}

// Shows words and environment in /proc/self/cmdline and environ, as a program finds a rank there;
// where the kernel does not let us (no CONFIG_CHECKPOINT_RESTORE) they stay those of `ranks`.
void show_in_proc(char* words, char* words_end, char* environment_end) {
  const std::string stat = read_file("/proc/self/stat");
  const auto fields = split_words(std::string_view(stat).substr(stat.rfind(')') + 1));
  constexpr std::size_t kFirst = 3;  // proc(5) counts from 1; the name was the second
  auto field = [&](std::size_t number) {
    return std::strtoull(std::string(fields.at(number - kFirst)).c_str(), nullptr, 10);
  };
  prctl_mm_map map{};
  map.start_code = field(26);
  map.end_code = field(27);
  map.start_stack = field(28);
  map.start_data = field(45);
  map.end_data = field(46);
  map.start_brk = field(47);
  map.brk = reinterpret_cast<uint64_t>(::sbrk(0));
  map.arg_start = reinterpret_cast<uint64_t>(words);
  map.arg_end = map.env_start = reinterpret_cast<uint64_t>(words_end);
  map.env_end = reinterpret_cast<uint64_t>(environment_end);
  map.exe_fd = static_cast<uint32_t>(-1);
  ::prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

// Gives this process the environment of the rank, for good.
void take_environment(const BornRank& rank) {
  std::string all;
  for (const std::string& word : rank.words) all.append(word).push_back('\0');
  const std::size_t words = all.size();
  for (const std::string& entry : rank.environment) all.append(entry).push_back('\0');
  char* block = new char[all.size()];
  std::copy(all.begin(), all.end(), block);
  char** entries = new char*[rank.environment.size() + 1];
  char* at = block + words;
  for (std::size_t i = 0; i < rank.environment.size(); ++i) {
    entries[i] = at;
    at += rank.environment[i].size() + 1;
  }
  entries[rank.environment.size()] = nullptr;
  environ = entries;
  show_in_proc(block, block + words, block + all.size());
}

// Closes all descriptors but the first three and `kept`.
void close_others(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (int one : kept) {
    if (one < 3) continue;
    const auto keep = static_cast<unsigned>(one);
    if (keep > from) ::close_range(from, keep - 1, 0);
    from = std::max(from, keep + 1);
  }
  ::close_range(from, ~0U, 0);
}

// The forked process becomes the rank, once the gate is open.
void live(const BornRank& rank, int gate, pid_t launcher) {
  ::setpgid(0, 0);
  if (::dup2(rank.output, 1) < 0 || ::dup2(rank.errors, 2) < 0) ::_exit(127);
  close_others({rank.reports, rank.inherited, gate});
  char open = 0;
  ssize_t size = 0;
  do {
    size = ::read(gate, &open, 1);
  } while (size < 0 && errno == EINTR);
  if (size != 1) ::_exit(127);  // the launcher is gone, or stops
  ::close(gate);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(127);  // it died before prctl
  take_environment(rank);
}

}  // namespace

bool RankNursery::suits(const std::vector<RankCommand>& commands) {
  const char* wish = std::getenv("LOCKSTEP_FORK_RANKS");
  if (commands.size() < 2 || (wish != nullptr && std::string_view(wish) == "0")) return false;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  return std::all_of(commands.begin(), commands.end(), [&](const RankCommand& command) {
    return command.words.front() == self && command.cores.empty();
  });
}

RankNursery::RankNursery(const std::vector<RankCommand>& commands) : count_(commands.size()) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Pipe births = open_pipe(), gate = open_pipe();
  std::vector<Descriptor> theirs;  // what ranks get; ours are closed when they have them
  OrderWriter orders;
  orders.add(::getpid()).add(births.write_end.get()).add(gate.read_end.get());
  orders.add(static_cast<int>(commands.size()));
  std::vector<int> inherited{births.write_end.get(), gate.read_end.get()};
  for (const RankCommand& command : commands) {
    RankStreams streams = open_streams(command);
    std::vector<std::string> environment = command.environment;
    environment.push_back(fmt::format("LOCKSTEP_REPORT_FD={}", streams.theirs[2].get()));
    orders.add(command.words).add(environment);
    for (Descriptor& end : streams.theirs) {
      orders.add(end.get());
      inherited.push_back(end.get());
      theirs.push_back(std::move(end));
    }
    orders.add(command.inherited);
    if (command.inherited >= 0) inherited.push_back(command.inherited);
    streams_.push_back(std::move(streams.process));
  }
  Descriptor memory(::memfd_create("lockstep-ranks", MFD_CLOEXEC));
  if (!memory.open()) throw MachineError("cannot order ranks: {}", std::strerror(errno));
  write_all(memory.get(), orders.bytes());
  inherited.push_back(memory.get());
  const int errors = theirs[1].get();  // what goes wrong at the load is said by the first rank
  process_ = start_program(
      {.words = {commands.front().words.front(), "ranks", std::to_string(memory.get())},
       .environment = commands.front().environment,
       .output = errors,
       .errors = errors,
       .inherited = inherited},
      nullptr);
  births_ = std::move(births.read_end);
  gate_ = std::move(gate.write_end);
}

RankNursery::~RankNursery() {
  gate_.close();
  if (process_ > 0) ::kill(process_, SIGKILL);
  reap();
  if (gone_) return;
  while (born_.size() < count_ && !take_births()) {  // those that were born since
  }
  for (pid_t rank : born_) {
    ::kill(rank, SIGKILL);
    ::waitpid(rank, nullptr, 0);
  }
}

void RankNursery::reap() {
  if (process_ <= 0) return;
  while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

std::optional<std::vector<pid_t>> RankNursery::take_births() {
  pid_t numbers[256];
  ssize_t size = 0;
  do {
    size = ::read(births_.get(), numbers, sizeof numbers);
  } while (size < 0 && errno == EINTR);
  if (size > 0) {
    born_.insert(born_.end(), numbers, numbers + static_cast<std::size_t>(size) / sizeof(pid_t));
  }
  if (born_.size() < count_ && size > 0) return {};
  reap();  // now the ranks are our children
  if (born_.size() < count_) return std::vector<pid_t>{};
  return born_;
}

void RankNursery::let_go() {
  gone_ = true;
  write_all(gate_.get(), std::string(count_, 'g'));
}

std::vector<std::string> live_as_rank(int orders_from) {
  OrderReader orders(read_orders(orders_from));
  const pid_t launcher = orders.number();
  const int births = orders.number(), gate = orders.number(), count = orders.number();
  std::vector<BornRank> ranks(static_cast<std::size_t>(count));
  for (BornRank& rank : ranks) {
    rank.words = orders.texts();
    rank.environment = orders.texts();
    rank.output = orders.number();
    rank.errors = orders.number();
    rank.reports = orders.number();
    rank.inherited = orders.number();
  }
  for (const BornRank& rank : ranks) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      live(rank, gate, launcher);
      return {rank.words.begin() + 1, rank.words.end()};
    }
    if (pid < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
    write_all(births, {reinterpret_cast<const char*>(&pid), sizeof pid});
  }
  ::_exit(0);
}

}  // namespace lockstep

#include "launch/processes/rank_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{descriptor, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void LineSplitter::take(std::string_view bytes, const Visit& visit) {
  for (char c : bytes) {
    if (c == '\n') {
      visit(line_);
      line_.clear();
      returned_ = false;
    } else if (c == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      returned_ = false;
      line_ += c;
      if (line_.size() < kLongestLine) continue;
      visit(line_);
      line_.clear();
    }
  }
}

void LineSplitter::end(const Visit& visit) {
  if (!line_.empty()) visit(line_);
  line_.clear();
  returned_ = false;
}

namespace {

constexpr std::size_t kLastLines = 12;

Descriptor create_output_file(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.open()) return file;
  if (errno == EEXIST) {
    throw ConfigError("{} exists already: choose another --output-dir", path.string());
  }
  throw MachineError("{}: cannot be created: {}", path.string(), std::strerror(errno));
}

std::string clean(std::string_view line) {
  if (!invalid_utf8_at(line)) return std::string(line);
  return to_utf8(to_code_points(line));
}

}  // namespace

RankOutput::RankOutput(int ranks, const Options& options)
    : ranks_(ranks), only_ranks_(options.only_ranks) {
  for (int i : {kStandardOutput, kStandardError}) {
    shown_[i] = {options.descriptors[i], ::isatty(options.descriptors[i]) == 1};
  }
  if (options.folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  if (failed) {
    throw MachineError("{}: cannot be created: {}", options.folder.string(), failed.message());
  }
  for (int rank = 0; rank < ranks; ++rank) {
    std::string stem = fmt::format("rank{:02}", rank);
    ranks_[rank].files[kStandardOutput] = create_output_file(options.folder / (stem + ".out"));
    ranks_[rank].files[kStandardError] = create_output_file(options.folder / (stem + ".err"));
  }
}

void RankOutput::take(int rank, Stream stream, std::string_view bytes) {
  Rank& from = ranks_[rank];
  if (from.files[stream].open() && !write_all(from.files[stream].get(), bytes)) {
    from.files[stream].close();
    note(fmt::format("lockstep launch: rank {}: its output cannot be filed any more: {}", rank,
                     std::strerror(errno)));
  }
  bool raw = rank == 0 && shown_[stream].terminal && is_shown(0);
  if (raw) pass_through(stream, bytes);
  from.splitters[stream].take(bytes, [&](std::string_view line) {
    remember(rank, line);
    if (!raw) show_line(rank, stream, line);
  });
}

void RankOutput::end(int rank, Stream stream) {
  bool raw = rank == 0 && shown_[stream].terminal && is_shown(0);
  if (raw && !unfinished_.empty() && unfinished_stream_ == stream) pass_through(stream, "\n");
  ranks_[rank].splitters[stream].end([&](std::string_view line) {
    remember(rank, line);
    if (!raw) show_line(rank, stream, line);
  });
}

void RankOutput::note(std::string_view line) {
  write_above_progress(shown_[kStandardError].descriptor, fmt::format("{}\n", line));
}

void RankOutput::remember(int rank, std::string_view line) {
  std::deque<std::string>& last = ranks_[rank].last;
  if (trim(line).empty()) return;
  last.push_back(clean(line));
  if (last.size() > kLastLines) last.pop_front();
}

bool RankOutput::is_shown(int rank) const {
  return only_ranks_.empty() ||
         std::find(only_ranks_.begin(), only_ranks_.end(), rank) != only_ranks_.end();
}

void RankOutput::show_line(int rank, Stream stream, std::string_view line) {
  if (!is_shown(rank)) return;
  auto index = static_cast<std::size_t>(rank);
  std::string text;
  if (rank > 0) {
    bool named = index < hosts_.size() && !hosts_[index].empty();
    text = fmt::format("[{}{}] ", named ? hosts_[index] + ":" : "rank ", rank);
  }
  text += clean(line);
  text += '\n';
  write_above_progress(shown_[stream].descriptor, text);
}

void RankOutput::pass_through(Stream stream, std::string_view bytes) {
  if (!unfinished_.empty() && unfinished_stream_ != stream) {
    write_all(shown_[stream].descriptor, "\n");  // keep what the other stream has shown
    unfinished_.clear();
  }
  write_all(shown_[stream].descriptor, bytes);
  unfinished_stream_ = stream;
  unfinished_ += bytes;
  std::size_t line_end = unfinished_.rfind('\n');
  if (line_end != std::string::npos) unfinished_.erase(0, line_end + 1);
  std::size_t redrawn = unfinished_.rfind('\r');
  if (redrawn != std::string::npos) unfinished_.erase(0, redrawn);
}

void RankOutput::write_above_progress(int descriptor, std::string_view text) {
  bool terminal = shown_[kStandardOutput].descriptor == descriptor
                      ? shown_[kStandardOutput].terminal
                      : shown_[kStandardError].terminal;
  if (!terminal || unfinished_.empty()) {
    write_all(descriptor, text);
    return;
  }
  write_all(descriptor, fmt::format("\r\x1b[K{}{}", text, unfinished_));
}

}  // namespace lockstep

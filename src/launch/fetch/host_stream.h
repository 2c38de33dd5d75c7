// Takes the files that one host sends (detail::kSendFiles) to their places here, each from where an
// earlier call broke off. A file counts only when the SHA-256 of all its bytes here is the host's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/digest.h"
#include "base/file.h"
#include "launch/fetch/run_listing.h"

namespace lockstep {

// A file that is wanted of a host.
struct FileWish {
  std::string path;         // there, below the run's folder
  fs::path target;          // here; bytes that lie there already are not sent again
  std::string sha256 = {};  // that it must have; empty: any
  bool from_start = false;  // what lies at the target is of another file
};

struct FileAnswer {
  enum class State {
    kNone,     // the host has not come to it
    kWhole,    // it is here, as the host has it
    kGone,     // the host has no such file any more
    kChanged,  // its digest differs from the host's, or the host's from the one it must have
  };
  State state = State::kNone;
  FileFacts facts;     // of the file that was sent
  std::string sha256;  // as the host has it
};

class HostStream {
 public:
  // Makes the folders of the targets. Throws MachineError when it cannot.
  explicit HostStream(std::vector<FileWish> wishes);

  // The lines that detail::kSendFiles reads.
  std::string requests() const;
  // Takes the next bytes of the host's output. Throws MachineError when the disk here refuses,
  // DataError when they are not what the script prints.
  void take(std::string_view bytes);

  const std::vector<FileWish>& wishes() const { return wishes_; }
  const std::vector<FileAnswer>& answers() const { return answers_; }
  int64_t moved_bytes() const { return moved_; }
  // Called for each wish when its state is known.
  std::function<void(std::size_t wish)> on_answer;

 private:
  void take_line(std::string_view line);
  void begin(std::size_t wish, int64_t offset);
  void write(std::string_view bytes);
  void end();
  void set_state(std::size_t wish, FileAnswer::State state);

  std::vector<FileWish> wishes_;
  std::vector<FileAnswer> answers_;
  std::vector<int64_t> here_;  // bytes at the targets at the start
  std::string line_;           // the beginning of one
  std::size_t now_ = 0;        // the wish whose bytes come
  int64_t left_ = -1;          // bytes of it that are to come; -1: a line comes
  int64_t at_ = 0, moved_ = 0;
  Descriptor file_;
  Digest digest_ = Digest::sha256();
};

}  // namespace lockstep

// What a job printed, on its way from a host through a connection that may break: pieces that say
// where they end in their file, so that a reader can go on there.
//
//   a line, kJobStreamMark  begins it; before it may stand a login message
//   "o END SIZE\n" BYTES   of standard output: SIZE bytes, END is the offset after them
//   "e END SIZE\n" BYTES   of standard error
//   "x CODE\n"             the job has ended, with this exit code
//   "l\n"                  no launcher runs, and the job has not ended
//   "g\n"                  that is all for now; the job goes on, or is lost
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::string_view kJobStreamMark = "lockstep job output";

class JobStreamReader {
 public:
  // Gets pieces; `errors` tells of which stream.
  using Take = std::function<void(bool errors, std::string_view bytes)>;
  explicit JobStreamReader(Take take) : take_(std::move(take)) {}

  // Takes bytes of the connection. Throws MachineError for what is no frame.
  void read(std::string_view bytes);
  void begin_again() {  // a new connection begins
    rest_.clear();
    marked_ = false;
  }

  int64_t out_offset() const { return out_; }  // -1: nothing came yet
  int64_t err_offset() const { return err_; }
  std::optional<int> exit_code() const { return exit_code_; }
  bool lost() const { return lost_; }
  bool whole() const { return whole_ || lost_ || exit_code_; }  // the end was told

 private:
  bool read_frame();

  Take take_;
  std::string rest_;
  int64_t out_ = -1, err_ = -1;
  std::optional<int> exit_code_;
  bool lost_ = false, whole_ = false, marked_ = false;
};

}  // namespace lockstep

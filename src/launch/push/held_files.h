// What a host holds of the files of a job, as the host itself says: `lockstep files`, which
// `launch --push` starts there over ssh (docs/launch.md#launch---push).
//
//   asked, a line each:  file SHA256 BYTES PATH    below the folder
//                        path PATH                 not sent: it must be there already
//   answered:            free KILOBYTES      of the folder's disk
//                        missing PATH        no such file
//                        changed PATH        the file has other contents
//                        used PID PATH       of these, one that a running job reads
//                        absent PATH         of those that are not sent
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/hosts/program_files.h"

namespace lockstep {

struct HeldFiles {
  int64_t free_bytes = -1;  // below 0: unknown
  std::vector<std::string> missing, changed, absent;
  struct Use {
    std::string path;
    int pid = 0;
  };
  std::vector<Use> used;
};

// Looks at a folder of this machine, which is made where there is none. Paths that are not sent may
// be relative to it. Throws MachineError when it cannot be made or written.
HeldFiles look_at_files(const fs::path& folder, const std::vector<Piece>& pieces,
                        const std::vector<std::string>& paths);

// The question's lines and the answer's, and what they say. Lines that are not understood are
// passed over: a login shell may print before.
std::string question_text(const std::vector<Piece>& pieces, const std::vector<std::string>& paths);
void read_question(std::string_view text, std::vector<Piece>& pieces,
                   std::vector<std::string>& paths);
std::string answer_text(const HeldFiles& held);
HeldFiles read_answer(std::string_view text);

}  // namespace lockstep

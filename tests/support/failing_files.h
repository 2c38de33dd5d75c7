// Files below one folder whose n-th change fails, or kills the process. Linked before libstdc++ and
// libc, or preloaded, the library stands in for their calls that change files. Preloaded, it reads
// LOCKSTEP_FAILING_FILES="ROOT NTH WHAT" with WHAT one of none, kill, power, ENOSPC, EDQUOT, EIO,
// EROFS, ESTALE, slow, or "@FILE" that holds these words. All processes with the same file in
// LOCKSTEP_COUNTED_FILES count together; its first 8 bytes are the number of changes.
#pragma once

namespace lockstep {

enum class FileFault {
  kNone,      // changes are counted
  kKill,      // SIGKILL in the middle of the n-th change: of a write, half is done
  kPower,     // before the n-th, files lose what was not synced; every process that counts dies in
              // its next change
  kFull,      // ENOSPC from the n-th on, of what needs space
  kQuota,     // EDQUOT, likewise
  kBroken,    // EIO, once
  kReadOnly,  // EROFS from the n-th on
  kGone,      // ESTALE from the n-th on, for reads that open something too
  kSlow,      // 20 ms before each change from the n-th on
};

// Counts changes below `root` from now on and lets the one with number `nth`, from 1, fail.
void fail_files(const char* root, long nth, FileFault fault);
// Lets all succeed again and returns how many changes were counted.
long stop_failing_files();

}  // namespace lockstep

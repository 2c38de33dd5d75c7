// Scripts of POSIX sh that HostChain runs in the hosts' shells; the variables that they use are set
// in front of them.
#pragma once

namespace lockstep::detail {

// What the key opens: one script, that the owner has put there.
inline constexpr const char* kDoor = R"sh(
if [ "$SSH_ORIGINAL_COMMAND" != take ]; then
  echo "this key is for one transfer of lockstep" >&2
  exit 1
fi
exec sh ./take
)sh";

// Uses $me and $next, names of hosts in `config`; $next may be empty. Passes standard input on to
// the next host and to `work`. Prints of each host a line "@ NAME STATUS", what its work printed
// behind "> " and, of its errors, behind "! "; of a next host that was not reached "? NAME", and
// ssh's words behind "! ". Nothing waits for who is not there any more: the pipe is open here while
// its two ends come, what `work` leaves is read away, and who goes on when this script is killed
// holds nothing of the connection's.
inline constexpr const char* kTake = R"sh(
cd "${0%/*}" || exit 1
here=$PWD
rm -f in-work
mkfifo in-work || exit 1
exec 3<>in-work
{
  exec 3>&-
  (cd; exec sh "$here/work") >out 2>err
  status=$?
  cat >/dev/null
  exit $status
} <in-work >/dev/null 2>&1 &
work=$!
if [ -n "$next" ]; then
  tee -p in-work 2>/dev/null 3>&- | ssh -F config "$next" take >after 2>after-err 3>&-
else
  cat >in-work 3>&-
fi
exec 3>&-
wait "$work"
echo "@ $me $?"
sed 's/^/> /' out
sed 's/^/! /' err
[ -n "$next" ] || exit 0
if grep -q '^@ ' after; then
  cat after
else
  echo "? $next"
  sed 's/^/! /' after-err
fi
)sh";

}  // namespace lockstep::detail

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
// ssh's words behind "! ".
inline constexpr const char* kTake = R"sh(
cd "${0%/*}" || exit 1
here=$PWD
rm -f in-work in-next
mkfifo in-work in-next || exit 1
(cd; exec sh "$here/work") <in-work >out 2>err &
work=$!
if [ -n "$next" ]; then
  ssh -F config "$next" take <in-next >after 2>after-err &
  tee -p in-next >in-work 2>/dev/null
else
  cat >in-work
fi
wait "$work"
echo "@ $me $?"
sed 's/^/> /' out
sed 's/^/! /' err
[ -n "$next" ] || exit 0
wait
if grep -q '^@ ' after; then
  cat after
else
  echo "? $next"
  sed 's/^/! /' after-err
fi
)sh";

}  // namespace lockstep::detail

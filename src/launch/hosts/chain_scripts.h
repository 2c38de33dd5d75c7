// Scripts of POSIX sh that HostChain runs in the hosts' shells; the variables that they use are set
// in front of them.
#pragma once

namespace lockstep::detail {

// Prints who this host is to others, as "NAME VALUE" lines. No ssh client: exit code 4.
inline constexpr const char* kWhoAmI = R"sh(
command -v ssh >/dev/null || { echo "no ssh client on this host" >&2; exit 4; }
command -v mkfifo >/dev/null || { echo "no mkfifo on this host" >&2; exit 4; }
echo "user $(id -un)"
set -- $SSH_CONNECTION
echo "address $3"
echo "port $4"
for file in /etc/ssh/*_key.pub; do
  if [ -r "$file" ]; then
    read -r kind key rest <"$file"
    echo "key $kind $key"
  fi
done
)sh";

// Uses $id and $line; reads a tar stream of the link's files. Old links of jobs that were killed
// go.
inline constexpr const char* kInstallLink = R"sh(
set -eu
umask 077
links=$HOME/.lockstep/links
mkdir -p "$links/$id" "$HOME/.ssh"
find "$links" -mindepth 1 -maxdepth 1 -type d -mtime +2 -exec rm -rf {} +
tar -xf - --no-same-owner -C "$links/$id"
chmod 600 "$links/$id/key"
exec 9>>"$links/lock"
if command -v flock >/dev/null; then flock 9; fi
keys=$HOME/.ssh/authorized_keys
if [ -s "$keys" ] && [ -n "$(tail -c 1 "$keys")" ]; then echo >>"$keys"; fi
printf '%s\n' "$line" >>"$keys"
)sh";

// Uses $id.
inline constexpr const char* kRemoveLink = R"sh(
umask 077
links=$HOME/.lockstep/links
exec 9>>"$links/lock"
if command -v flock >/dev/null; then flock 9; fi
keys=$HOME/.ssh/authorized_keys
if grep -v " lockstep-$id\$" "$keys" >"$keys.$id" || [ $? = 1 ]; then cat "$keys.$id" >"$keys"; fi
rm -rf "$keys.$id" "$links/$id"
)sh";

// What the key opens: one script, that the owner has put there.
inline constexpr const char* kDoor = R"sh(
cd "${0%/*}" || exit 1
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

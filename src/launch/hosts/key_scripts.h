// Scripts of POSIX sh for host_key.cpp; the variables that they use are set in front of them.
#pragma once

namespace lockstep::detail {

// Prints who this host is to others, as "NAME VALUE" lines. No ssh client: exit code 4.
inline constexpr const char* kWhoAmI = R"sh(
command -v ssh >/dev/null || { echo "no ssh client on this host" >&2; exit 4; }
command -v mkfifo >/dev/null || { echo "no mkfifo on this host" >&2; exit 4; }
echo "user $(id -un)"
set -- $SSH_CONNECTION
echo "address $3"
echo "port ${4:-22}"
for file in /etc/ssh/*_key.pub; do
  if [ -r "$file" ]; then
    read -r kind key rest <"$file"
    echo "key $kind $key"
  fi
done
)sh";

// Opens ~/.ssh/authorized_keys as $keys, alone, for a rewriting that goes through $new: a login at
// any moment finds the lines of before or those of after, and a full disk leaves those of before.
// use_new_keys puts $new in the place; where $keys is a mount of its own, as in containers, that
// cannot be renamed over, and it is written over.
inline constexpr const char* kLockKeys = R"sh(
umask 077
mkdir -p "$HOME/.lockstep" "$HOME/.ssh" || exit 1
keys=$HOME/.ssh/authorized_keys
if [ -L "$keys" ]; then keys=$(readlink -f "$keys") || exit 1; fi
new=$keys.$id
exec 9>>"$HOME/.lockstep/keys.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ -f "$keys" ]; then cp -p "$keys" "$new" || { rm -f "$new"; exit 1; }; fi
use_new_keys() {
  mv -f "$new" "$keys" 2>/dev/null || { cat "$new" >"$keys" && rm -f "$new"; }
}
)sh";

// Uses $id, $folder, $line and $me, and what kLockKeys sets; reads a tar stream of the key's files.
// Transfers that were killed leave their folders, and these go; so do keys without a folder.
inline constexpr const char* kInstallKey = R"sh(
set -eu
trap 'rm -f "$new"' EXIT
links=$HOME/.lockstep/links
[ ! -d "$links" ] || find "$links" -mindepth 1 -maxdepth 1 -type d -mtime +2 -exec rm -rf {} +
mkdir -p "$HOME/$folder"
tar -xf - --no-same-owner -C "$HOME/$folder"
chmod 600 "$HOME/$folder/key"
[ -f "$keys" ] || : >"$keys"
while IFS= read -r old || [ -n "$old" ]; do
  case $old in
    *" lockstep-$id") continue ;;
    *'command="sh ~/.lockstep/'*'/door"'*)
      of=${old#*command=\"sh ?/}
      [ -f "$HOME/${of%%\"*}" ] || continue ;;
  esac
  printf '%s\n' "$old"
done <"$keys" >"$new"
printf '%s\n' "$line" >>"$new"
use_new_keys
cd "$HOME/$folder"
)sh";

// Uses $id and $folder, and what kLockKeys sets.
inline constexpr const char* kRemoveKey = R"sh(
if [ -f "$keys" ]; then
  if grep -v " lockstep-$id\$" "$keys" >"$new" || [ $? = 1 ]; then use_new_keys; fi
  rm -f "$new"
fi
cd "$HOME/$folder" 2>/dev/null && rm -f key config known_hosts door
)sh";

// Uses $id and $expiry, and what kLockKeys sets.
inline constexpr const char* kRenewKey = R"sh(
time='expiry-time="[0-9]*"'
sed "/ lockstep-$id\$/s/$time/expiry-time=\"$expiry\"/" "$keys" >"$new" && use_new_keys
rm -f "$new"
)sh";

}  // namespace lockstep::detail

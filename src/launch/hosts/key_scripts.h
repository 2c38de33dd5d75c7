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

// Opens ~/.ssh/authorized_keys as $keys, alone.
inline constexpr const char* kLockKeys = R"sh(
umask 077
mkdir -p "$HOME/.lockstep" "$HOME/.ssh" || exit 1
keys=$HOME/.ssh/authorized_keys
exec 9>>"$HOME/.lockstep/keys.lock"
if command -v flock >/dev/null; then flock 9; fi
)sh";

// Uses $id, $folder, $line and $me, and $keys of kLockKeys; reads a tar stream of the key's files.
// Transfers that were killed leave their folders, and these go; so do keys without a folder.
inline constexpr const char* kInstallKey = R"sh(
set -eu
links=$HOME/.lockstep/links
[ ! -d "$links" ] || find "$links" -mindepth 1 -maxdepth 1 -type d -mtime +2 -exec rm -rf {} +
mkdir -p "$HOME/$folder"
tar -xf - --no-same-owner -C "$HOME/$folder"
chmod 600 "$HOME/$folder/key"
if [ -f "$keys" ]; then
  while IFS= read -r old || [ -n "$old" ]; do
    case $old in
      *" lockstep-$id") continue ;;
      *'command="sh ~/.lockstep/'*'/door"'*)
        of=${old#*command=\"sh ?/}
        [ -f "$HOME/${of%%\"*}" ] || continue ;;
    esac
    printf '%s\n' "$old"
  done <"$keys" >"$keys.$id"
  cat "$keys.$id" >"$keys"
  rm -f "$keys.$id"
fi
printf '%s\n' "$line" >>"$keys"
cd "$HOME/$folder"
)sh";

// Uses $id and $folder, and $keys of kLockKeys.
inline constexpr const char* kRemoveKey = R"sh(
if [ -f "$keys" ]; then
  if grep -v " lockstep-$id\$" "$keys" >"$keys.$id" || [ $? = 1 ]; then
    cat "$keys.$id" >"$keys"
  fi
  rm -f "$keys.$id"
fi
cd "$HOME/$folder" 2>/dev/null && rm -f key config known_hosts door
)sh";

// Uses $id and $expiry, and $keys of kLockKeys.
inline constexpr const char* kRenewKey = R"sh(
time='expiry-time="[0-9]*"'
sed "/ lockstep-$id\$/s/$time/expiry-time=\"$expiry\"/" "$keys" >"$keys.$id" &&
  cat "$keys.$id" >"$keys"
rm -f "$keys.$id"
)sh";

}  // namespace lockstep::detail
